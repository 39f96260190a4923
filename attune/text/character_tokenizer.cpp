#include "attune/text/character_tokenizer.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/text_file.h"
#include "attune/text/vocabulary_json.h"

namespace attune {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
constexpr size_t kCodePoints = 0x110000;

/// The code point of a well-formed UTF-8 sequence.
size_t code_point(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  size_t value = lead & (0x7Fu >> sequence.size());
  for (const char byte : sequence.substr(1)) value = value << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return value;
}

/// Collects the different characters of texts.
class CharacterSet {
 public:
  void add(std::string_view text) {
    while (!text.empty()) {
      const size_t length = utf8_sequence(text);
      if (length == 0) fail<DataError>("a text is not valid UTF-8");
      const std::string_view character = text.substr(0, length);
      if (const size_t place = code_point(character); !seen_[place]) {
        seen_[place] = true;
        characters_.emplace_back(character);
      }
      text.remove_prefix(length);
    }
  }

  CharacterTokenizer tokenizer() {
    if (characters_.empty()) fail<DataError>("there are no characters, so the vocabulary would be empty");
    std::sort(characters_.begin(), characters_.end());  // the order of UTF-8's bytes is that of code points
    return CharacterTokenizer(std::move(characters_));
  }

 private:
  std::vector<std::string> characters_;
  std::vector<bool> seen_ = std::vector<bool>(kCodePoints);
};

}  // namespace

CharacterTokenizer::CharacterTokenizer(std::vector<std::string> characters)
    : pieces_(kSpecialPieces.begin(), kSpecialPieces.end()) {
  for (std::string& character : characters) {
    const size_t id = pieces_.size();
    if (character.empty() || utf8_sequence(character) != character.size())
      fail<DataError>("character {} (\"{}\") is not one code point in UTF-8", id - kSpecialPieces.size(),
                      valid_utf8(character) ? cut_text(character, 100) : "");
    const size_t place = code_point(character);
    if (place >= ids_.size()) ids_.resize(place + 1, special_.unk);
    if (ids_[place] != special_.unk)
      fail<DataError>("character {} (\"{}\") is there a second time", id - kSpecialPieces.size(), character);
    ids_[place] = static_cast<int32_t>(id);
    pieces_.push_back(std::move(character));
  }
}

CharacterTokenizer CharacterTokenizer::build(const std::vector<std::filesystem::path>& files) {
  CharacterSet set;
  std::string piece;
  for (const auto& file : files)
    for (TextReader reader(file); reader.next(piece);) set.add(piece);
  return set.tokenizer();
}

CharacterTokenizer CharacterTokenizer::build_from_texts(const std::vector<std::string>& texts) {
  CharacterSet set;
  for (const std::string& text : texts) set.add(text);
  return set.tokenizer();
}

CharacterTokenizer CharacterTokenizer::from_json(std::string_view text, const std::string& name) {
  nlohmann::json vocabulary = parse_vocabulary(text, "characters", {"characters"}, name);
  try {
    return CharacterTokenizer(take_strings(vocabulary, "characters", "character", name));
  } catch (const DataError& error) {
    fail<FileError>("{}: {}", name, error.what());
  }
}

std::vector<int32_t> CharacterTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    const size_t place = length == 0 ? kCodePoints : code_point(text.substr(0, length));
    ids.push_back(place < ids_.size() ? ids_[place] : special_.unk);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return ids;
}

std::string CharacterTokenizer::join(const std::vector<int>& ids) const {
  std::string text;
  for (const int id : ids) text += pieces_[static_cast<size_t>(id)];
  return text;
}

std::string CharacterTokenizer::piece(int32_t id) const {
  check_id(id);
  return pieces_[static_cast<size_t>(id)];
}

void CharacterTokenizer::save(const std::filesystem::path& file) const {
  nlohmann::ordered_json vocabulary;
  vocabulary["type"] = "characters";
  vocabulary["characters"] = std::vector<std::string>(pieces_.begin() + kSpecialPieces.size(), pieces_.end());
  write_file(file, vocabulary.dump(1) + "\n");
}

ByteTokenizer ByteTokenizer::from_json(std::string_view text, const std::string& name) {
  parse_vocabulary(text, "bytes", {}, name);
  return {};
}

std::vector<int32_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids(text.size());
  std::transform(text.begin(), text.end(), ids.begin(), [](char byte) {
    return static_cast<int32_t>(kSpecialPieces.size()) + static_cast<unsigned char>(byte);
  });
  return ids;
}

std::string ByteTokenizer::join(const std::vector<int>& ids) const {
  constexpr int specials = static_cast<int>(kSpecialPieces.size());
  std::string bytes;
  for (const int id : ids)
    if (id == special_.unk)
      bytes += kReplacementCharacter;
    else if (id < specials)
      bytes += kSpecialPieces[static_cast<size_t>(id)];
    else
      bytes += static_cast<char>(id - specials);
  if (valid_utf8(bytes)) return bytes;
  std::string text;
  for (std::string_view rest = bytes; !rest.empty();) {
    const size_t length = utf8_sequence(rest);
    text += length == 0 ? kReplacementCharacter : rest.substr(0, length);
    rest.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

std::string ByteTokenizer::piece(int32_t id) const {
  check_id(id);
  const auto place = static_cast<size_t>(id);
  return place < kSpecialPieces.size() ? std::string(kSpecialPieces[place])
                                       : fmt::format("<0x{:02X}>", place - kSpecialPieces.size());
}

void ByteTokenizer::save(const std::filesystem::path& file) const {
  write_file(file, "{\"type\": \"bytes\"}\n");
}

}  // namespace attune
