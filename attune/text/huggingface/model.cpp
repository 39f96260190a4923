#include "attune/text/huggingface/model.h"

#include <array>
#include <nlohmann/json.hpp>

#include "attune/base/cut_text.h"
#include "attune/base/json.h"
#include "attune/text/huggingface/bpe.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/huggingface/unigram.h"
#include "attune/text/huggingface/word_level.h"
#include "attune/text/huggingface/word_piece.h"

namespace attune::huggingface {
namespace {

bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct ByteAlphabet {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 324> byte;
  ByteAlphabet() {
    byte.fill(-1);
    char32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      character[b] = stands_for_itself(b) ? b : next++;
      byte[character[b]] = static_cast<int16_t>(b);
    }
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

// Files of before 2021 do not say which model they have.
std::string type_of(const Fields& fields, const TokenizerJson& file) {
  if (fields.find("type")) return fields.string("type");
  if (!file.vocabulary.scores.empty()) return "Unigram";
  if (file.merges.size() > 0) return "BPE";
  return fields.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

Model::~Model() = default;

int byte_of_character(char32_t c) {
  return c < byte_alphabet().byte.size() ? byte_alphabet().byte[c] : -1;
}

char32_t character_of_byte(uint8_t byte) {
  return byte_alphabet().character[byte];
}

bool bytes_of_characters(std::string_view text, std::string& bytes) {
  bytes.clear();
  for (size_t at = 0; at < text.size();) {
    const int byte = byte_of_character(next_character(text, at));
    if (byte < 0) return false;
    bytes.push_back(static_cast<char>(byte));
  }
  return true;
}

ByteTokens::ByteTokens(const TokenMap& vocabulary) {
  for (size_t byte = 0; byte < ids_.size(); ++byte) ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
}

bool ByteTokens::append(std::string_view bytes, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  for (const char byte : bytes) {
    const int32_t id = ids_[static_cast<uint8_t>(byte)];
    if (id < 0) {
      ids.resize(before);
      return false;
    }
    ids.push_back(id);
  }
  return true;
}

TokenMap token_map(const VocabularyEntries& entries, const std::string& where) {
  if (!entries.scores.empty()) fail<FileError>("{}: has scores, which only Unigram has", where);
  TokenMap map;
  map.reserve(entries.tokens.size());
  for (size_t i = 0; i < entries.tokens.size(); ++i) {
    if (map.has(entries.ids[i]))
      fail<FileError>("{}: id {} belongs to \"{}\" and to \"{}\"", where, entries.ids[i], map.token(entries.ids[i]),
                      entries.tokens[i]);
    if (!map.insert(entries.tokens[i], entries.ids[i]))
      fail<FileError>("{}: the vocabulary has {} twice", where, cut_text(show(Json(entries.tokens[i])), 200));
  }
  return map;
}

void check_token_bytes(const TokenMap& vocabulary, const std::string& where) {
  constexpr size_t kMost = 1024;
  for (int32_t id = 0; id <= vocabulary.highest_id(); ++id)
    if (const size_t bytes = vocabulary.token(id).size(); bytes > kMost)
      fail<FileError>("{}: token {} has {} bytes, at most {} are accepted", where, id, bytes, kMost);
}

std::unique_ptr<Model> read_model(TokenizerJson& file, const std::string& name) {
  const auto found = file.values.find("model");
  if (found == file.values.end()) fail<FileError>("{}: model: is missing", name);
  const Fields fields(*found, name + ": model");
  const std::string type = type_of(fields, file);
  if (type == "BPE") return read_bpe(fields, file);
  if (type == "Unigram") return read_unigram(fields, file);
  if (type == "WordPiece") return read_word_piece(fields, file);
  if (type == "WordLevel") return read_word_level(fields, file);
  fields.refuse("type", "\"BPE\", \"WordPiece\", \"Unigram\" or \"WordLevel\"");
}

}  // namespace attune::huggingface
