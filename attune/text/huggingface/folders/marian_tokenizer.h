#pragma once
// The tokenizer of Marian models from the hub: SentencePiece cuts, vocab.json numbers.

#include <filesystem>
#include <memory>
#include <string>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/huggingface/settings_files.h"
#include "attune/text/huggingface/token_map.h"
#include "attune/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace attune::huggingface {

/// source.spm cuts a text of the source language into pieces, target.spm one of the target language, and vocab.json has
/// the ids of the pieces of both. A text to translate may begin with a language code, >>de<<, which is one token. A
/// model expects </s> after a text.
class MarianTokenizer final : public Tokenizer {
 public:
  /// `vocabulary` is a vocab.json with a source.spm and a target.spm beside. Throws FileError that names the file.
  explicit MarianTokenizer(const std::filesystem::path& vocabulary);
  ~MarianTokenizer() override;

  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> encode_target(std::string_view text) const override;
  Encoding encode_for_model(std::string_view text, const EncodeOptions& options = {}) const override;
  int32_t token_id(std::string_view token) const override;
  bool is_special_token(int32_t id) const override { return added_.is_special(id); }
  int32_t vocab_size() const override { return added_.highest_id() + 1; }
  std::string piece(int32_t id) const override;
  std::string kind() const override { return "Marian"; }
  std::string file_name() const override { return "vocab.json"; }
  bool can_be_one_of_two() const override { return false; }
  /// Writes the .spm files and those with its settings beside.
  void save(const std::filesystem::path& file) const override;

 private:
  using Processor = sentencepiece::SentencePieceProcessor;

  std::string join(const std::vector<int>& ids) const override;
  void add(std::string_view token, std::vector<int32_t>& ids) const;
  void add_pieces(const Processor& processor, std::string_view text, std::vector<int32_t>& ids) const;

  std::string vocabulary_json_, source_, target_;  // the files
  TokenMap vocabulary_;
  AddedTokens added_;  // the special ones, and those that the folder adds
  SettingsFiles beside_;
  std::unique_ptr<Processor> of_source_, of_target_;
};

}  // namespace attune::huggingface
