#include "attune/text/tokenizer.h"

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/vocabulary_json.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {

Tokenizer::~Tokenizer() = default;

void Tokenizer::check_id(int32_t id) const {
  if (id < 0 || id >= vocab_size()) fail<DataError>("token id {} is outside the vocabulary of {}", id, vocab_size());
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<int> kept;
  kept.reserve(ids.size());
  for (const int32_t id : ids) {
    check_id(id);
    if (id != special_.pad && id != special_.bos && id != special_.eos) kept.push_back(id);
  }
  return join(kept);
}

namespace {

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view text, const std::string& name) {
  const std::string type = vocabulary_type(text, name);
  if (type == "whitespace") return std::make_unique<WhitespaceTokenizer>(WhitespaceTokenizer::from_json(text, name));
  if (type == "characters") return std::make_unique<CharacterTokenizer>(CharacterTokenizer::from_json(text, name));
  if (type == "bytes") return std::make_unique<ByteTokenizer>(ByteTokenizer::from_json(text, name));
  fail<FileError>(
      "{}: not a vocabulary: the field \"type\" is \"{}\", expected \"whitespace\", \"characters\" or \"bytes\"", name,
      type.substr(0, 100));
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& file) {
  std::string bytes = read_file(file, kMaxTokenizerBytes);
  const std::string extension = file.extension().string();
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_object = first != std::string::npos && bytes[first] == '{';
  if (extension == ".json" || (extension != ".model" && is_object)) return tokenizer_from_json(bytes, file.string());
  return std::make_unique<SentencePieceTokenizer>(std::move(bytes), file.string());
}

}  // namespace attune
