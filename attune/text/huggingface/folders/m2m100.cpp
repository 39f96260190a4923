#include "attune/text/huggingface/folders/m2m100.h"

#include <sentencepiece_processor.h>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/hugging_face_tokenizer.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/sentence_piece_processor.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

class NumberedPieces final : public Model {
 public:
  NumberedPieces(TokenMap vocabulary, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor, int32_t unknown)
      : Model(std::move(vocabulary)), processor_(std::move(processor)), unknown_(unknown) {}
  int32_t unknown_id() const override { return unknown_; }

 private:
  void encode_new(std::string_view text, Workspace&, std::vector<int32_t>& ids) const override {
    std::vector<std::string> pieces;
    attune::encode(*processor_, text, pieces);
    for (const std::string& piece : pieces) {
      const int32_t id = vocabulary_.find(piece);
      ids.push_back(id >= 0 ? id : unknown_);
    }
  }

  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  int32_t unknown_;
};

fs::path vocabulary_beside(const fs::path& file) {
  return file.parent_path() / "vocab.json";
}

std::string token_of(const std::string& language) {
  return "__" + language + "__";
}

}  // namespace

bool is_m2m100(const fs::path& file, const TokenizerConfig& config) {
  const std::string name = config.tokenizer_class();
  return name == "M2M100Tokenizer" || (name.empty() && is_there(vocabulary_beside(file)));
}

std::unique_ptr<Tokenizer> load_m2m100(const fs::path& file, TokenizerConfig config) {
  const fs::path numbers = vocabulary_beside(file);
  TokenMap vocabulary =
      token_map(parse_vocabulary_object(read_file(numbers, kMaxTokenizerBytes), numbers.string()), numbers.string());
  Parts parts;
  const auto special = [&](std::string& name, const char* otherwise) {
    if (name.empty()) name = otherwise;
    const int32_t id = vocabulary.find(name);
    if (id < 0) fail<FileError>("{}: the token {} is missing", numbers.string(), name);
    parts.added_tokens.push_back({.content = name, .normalized = false, .special = true});
    return id;
  };
  special(config.names.bos, "<s>");
  special(config.names.pad, "<pad>");
  const int32_t end = special(config.names.eos, "</s>"), unknown = special(config.names.unk, "<unk>");
  const std::string source = token_of(config.text("src_lang", "en"));
  int32_t language = -1, next = vocabulary.highest_id() + 1;
  for (const std::string& token : config.languages(file.string())) {
    if (vocabulary.find(token) >= 0) continue;
    if (token == source || language < 0) language = next;
    ++next;
    parts.added_tokens.push_back({.content = token, .normalized = false, .special = true});
  }
  parts.added_tokens.insert(parts.added_tokens.end(), config.added.begin(), config.added.end());
  if (language < 0) fail<FileError>("{}: has a language as a piece: {}", numbers.string(), source);
  auto processor = load_sentence_piece(read_file(file, kMaxTokenizerBytes), file.string());
  parts.model = std::make_unique<NumberedPieces>(std::move(vocabulary), std::move(processor), unknown);
  parts.post_processor = around_language(language, end, true);
  const nlohmann::json metaspace = {{"type", "Metaspace"}, {"replacement", kMetaspace}, {"prepend_scheme", "always"}};
  parts.decoder = read_decoder(&metaspace, file.string());
  parts.names = std::move(config.names);
  parts.files = {file, numbers};
  parts.files.insert(parts.files.end(), config.files.begin(), config.files.end());
  parts.file_name = file.filename().string();
  return std::make_unique<HuggingFaceTokenizer>(std::move(parts));
}

}  // namespace attune::huggingface
