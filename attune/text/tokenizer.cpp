#include "attune/text/tokenizer.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/rounding.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/huggingface/folders/folder.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/tokenizer_files.h"
#include "attune/text/unicode.h"
#include "attune/text/vocabulary_json.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {

Tokenizer::~Tokenizer() = default;

void Tokenizer::check_id(int32_t id) const {
  if (id < 0 || id >= vocab_size()) fail<DataError>("token id {} is outside the vocabulary of {}", id, vocab_size());
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool with_special_tokens) const {
  std::vector<int> kept;
  kept.reserve(ids.size());
  for (const int32_t id : ids) {
    check_id(id);
    if (with_special_tokens || !is_special_token(id)) kept.push_back(id);
  }
  return join(kept);
}

bool Tokenizer::is_special_token(int32_t id) const {
  return id == special_.pad || id == special_.bos || id == special_.eos;
}

int32_t Tokenizer::token_id(std::string_view token) const {
  for (int32_t id = 0; id < vocab_size(); ++id)
    if (piece(id) == token) return id;
  return -1;
}

Encoding Tokenizer::encode_for_model(std::string_view text, const EncodeOptions& options) const {
  Encoding result{encode(text), {}};
  if (options.truncation) result.cut = truncate(*options.truncation, 0, result.ids, nullptr);
  result.type_ids.resize(result.ids.size(), 0);
  return result;
}

Encoding Tokenizer::encode_pair(std::string_view, std::string_view, const EncodeOptions&) const {
  fail<ConfigError>("the tokenizer has no form for two texts");
}

namespace {

std::unique_ptr<Tokenizer> tokenizer_from_json(const std::string& bytes, const std::filesystem::path& file) {
  const std::string name = file.string();
  if (huggingface::is_tokenizer_json(bytes)) return huggingface::load_tokenizer_json(bytes, file);
  const std::string type = vocabulary_type(bytes, name);
  if (type == "whitespace") return std::make_unique<WhitespaceTokenizer>(WhitespaceTokenizer::from_json(bytes, name));
  if (type == "characters") return std::make_unique<CharacterTokenizer>(CharacterTokenizer::from_json(bytes, name));
  if (type == "bytes") return std::make_unique<ByteTokenizer>(ByteTokenizer::from_json(bytes, name));
  const std::string found = bytes[bytes.find_first_not_of(" \t\r\n")] != '{' ? "is not an object"
                            : type.empty()                                   ? "has no \"type\""
                                           : fmt::format("\"type\" is \"{}\"", cut_text(type, 100));
  fail<FileError>(
      "{}: not a tokenizer: {}; expected the object of a Hugging Face tokenizer.json, or one with \"type\": "
      "\"whitespace\", "
      "\"characters\" or \"bytes\"",
      name, found);
}

void cut(std::vector<int32_t>& ids, int64_t length, bool from_left) {
  const auto kept = static_cast<size_t>(std::max<int64_t>(length, 0));
  if (ids.size() <= kept) return;
  from_left ? void(ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(kept))) : ids.resize(kept);
}

// The lengths of two texts that may have `most` tokens together: the longer one is cut first, until both are equal.
std::pair<int64_t, int64_t> shared_lengths(int64_t first, int64_t second, int64_t most) {
  const bool swapped = first > second;
  if (swapped) std::swap(first, second);
  second = first > most ? first : std::max(first, most - first);
  if (first + second > most) {
    first = most / 2;
    second = first + most % 2;
  }
  if (swapped) std::swap(first, second);
  return {first, second};
}

}  // namespace

int64_t truncate(const Truncation& truncation, int64_t added, std::vector<int32_t>& first,
                 std::vector<int32_t>* second) {
  using Strategy = Truncation::Strategy;
  const auto first_size = static_cast<int64_t>(first.size());
  const auto second_size = second == nullptr ? 0 : static_cast<int64_t>(second->size());
  const int64_t most = std::max<int64_t>(truncation.max_length - added, 0);
  const int64_t excess = first_size + second_size - most;
  if (excess <= 0) return 0;
  if (truncation.strategy == Strategy::longest_first) {
    const auto [a, b] = second == nullptr ? std::pair(most, int64_t{0}) : shared_lengths(first_size, second_size, most);
    cut(first, a, truncation.from_left);
    if (second != nullptr) cut(*second, b, truncation.from_left);
    return excess;
  }
  std::vector<int32_t>* const target = truncation.strategy == Strategy::only_first ? &first : second;
  const int64_t size = truncation.strategy == Strategy::only_first ? first_size : second_size;
  if (target == nullptr || size <= excess)
    fail<DataError>("cannot truncate {} tokens to {}: the {} text has {}", first_size + second_size, most,
                    target == &first ? "first" : "second", size);
  cut(*target, size - excess, truncation.from_left);
  return excess;
}

void pad(const Padding& padding, std::vector<Encoding>& batch) {
  int64_t length = padding.length;
  if (length == 0)
    for (const Encoding& encoding : batch) length = std::max(length, static_cast<int64_t>(encoding.ids.size()));
  const int64_t multiple = std::max<int64_t>(padding.multiple_of, 1);
  const auto wanted = static_cast<size_t>(round_up(length, multiple));
  for (Encoding& encoding : batch) {
    if (encoding.ids.size() >= wanted) continue;
    const size_t missing = wanted - encoding.ids.size();
    encoding.ids.insert(padding.on_left ? encoding.ids.begin() : encoding.ids.end(), missing, padding.id);
    encoding.type_ids.insert(padding.on_left ? encoding.type_ids.begin() : encoding.type_ids.end(), missing,
                             padding.type_id);
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const std::filesystem::path found = find_tokenizer(path);
    if (found.empty()) fail<FileError>("{}: needs {}", path.string(), kTokenizerFileNames);
    return load_tokenizer(found);
  }
  if (auto tokenizer = huggingface::load_by_file_name(path)) return tokenizer;
  std::string bytes = read_file(path, kMaxTokenizerBytes);
  if (bytes.starts_with(kByteOrderMark)) bytes.erase(0, kByteOrderMark.size());
  const std::string extension = path.extension().string();
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool is_object = first != std::string::npos && bytes[first] == '{';
  if (extension == ".json" || (extension != ".model" && is_object)) return tokenizer_from_json(bytes, path);
  return std::make_unique<SentencePieceTokenizer>(std::move(bytes), path.string());
}

}  // namespace attune
