#pragma once
// Folders with a SentencePiece model and without tokenizer.json.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/huggingface/folders/tokenizer_config.h"
#include "attune/text/huggingface/post_processor.h"
#include "attune/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace attune::huggingface {

/// What a class of transformers says in its code: the ids of pieces, and the tokens around a text.
struct PieceLayout {
  std::vector<std::string> first = {};  // the tokens of the first ids, in place of the model's first ones
  int32_t shift = 0;                    // the id of any other piece is its number in the model, plus this
  std::vector<std::string> last = {};   // the tokens after all pieces: languages, <mask>, ...
  std::vector<AddedToken> added = {};   // what the folder adds, and how tokens of the class are found in a text
  bool splits_special = false;          // special tokens in a text are text
  bool prefix_once = false;             // only the beginning of a text gets a space in front, not what follows a token
  SpecialIds special = {};
  PostProcessor around = {};
};

/// A SentencePiece model with the ids of another program: fairseq's, for XLM-R and NLLB, or with more tokens, for T5.
class PieceTokenizer final : public Tokenizer {
 public:
  /// `beside` are the files with its settings, which save() writes too.
  PieceTokenizer(std::string model, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor,
                 PieceLayout layout, const std::filesystem::path& file, SettingsFiles beside);
  ~PieceTokenizer() override;

  /// Special tokens that stand in a text become their ids.
  std::vector<int32_t> encode(std::string_view text) const override;
  Encoding encode_for_model(std::string_view text, const EncodeOptions& options = {}) const override;
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options = {}) const override;
  int32_t token_id(std::string_view token) const override;
  bool is_special_token(int32_t id) const override;
  int32_t vocab_size() const override;
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "SentencePiece"; }
  std::string file_name() const override { return file_.filename().string(); }
  bool can_be_one_of_two() const override { return false; }
  /// Writes the files beside too.
  void save(const std::filesystem::path& file) const override;

 private:
  std::string join(const std::vector<int>& ids) const override;
  int32_t pieces_end() const;  // the first id after all pieces
  void add_tokens();

  std::string model_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  PieceLayout layout_;
  AddedTokens added_;  // the tokens of the layout
  std::filesystem::path file_;
  SettingsFiles beside_;
};

/// Reads a SentencePiece model as the class that `config`, of the same folder, names, else as that of config.json's
/// "tokenizer_class" or "model_type" there. Throws FileError that names the class if it is not supported.
std::unique_ptr<Tokenizer> load_piece_tokenizer(const std::filesystem::path& file, const TokenizerConfig& config);

}  // namespace attune::huggingface
