// SentencePiece's charsmap: a trie of what is replaced (darts-clone's units of 32 bits) and a block of replacements,
// each ended by a zero.

#include <algorithm>
#include <array>
#include <vector>

#include "attune/text/darts_unit.h"
#include "attune/text/huggingface/normalizers.h"
#include "attune/text/huggingface/steps.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/text_file.h"

namespace attune::huggingface {
namespace {

constexpr size_t kLongestCluster = 5;  // bytes; of longer grapheme clusters each character is replaced by itself

std::string decode_base64(const std::string& text, const std::string& where) {
  std::array<int8_t, 256> values;
  values.fill(-1);
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < digits.size(); ++i) values[static_cast<uint8_t>(digits[i])] = static_cast<int8_t>(i);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t buffer = 0;
  int bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const int8_t value = values[static_cast<uint8_t>(c)];
    if (value < 0) fail<FileError>("{}: is not base64", where);
    buffer = buffer << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(buffer >> bits & 0xFF));
  }
  return bytes;
}

class Precompiled final : public Normalizer {
 public:
  Precompiled(const std::string& map, const std::string& where) {
    const auto unit = [&](size_t i) {
      uint32_t value = 0;
      for (size_t k = 0; k < 4; ++k) value |= uint32_t{static_cast<uint8_t>(map[4 * i + k])} << (8 * k);
      return value;
    };
    if (map.empty()) return;
    const size_t bytes = map.size() >= 4 ? unit(0) : 0;
    if (bytes == 0 || bytes % 4 != 0 || bytes > map.size() - 4)
      fail<FileError>("{}: its trie has {} bytes, the whole has {}", where, bytes, map.size());
    for (size_t i = 0; i < bytes / 4; ++i) units_.push_back(unit(1 + i));
    replacements_ = map.substr(4 + bytes);
    if (!valid_utf8(replacements_)) fail<FileError>("{}: its replacements are not UTF-8", where);
    for (size_t begin = 0, end = 0; begin < replacements_.size(); begin = end + 1) {
      end = std::min(replacements_.find('\0', begin), replacements_.size());
      if (end - begin > kLongestContent)
        fail<FileError>("{}: has a replacement of {} bytes, at most {} are accepted", where, end - begin,
                        kLongestContent);
    }
    for (size_t c = 0; c < 128; ++c) {
      const char byte = static_cast<char>(c);
      std::string_view replacement;
      plain_[c] = !find({&byte, 1}, replacement);
    }
  }

  void apply(NormalizedText& text) const override {
    if (units_.empty()) return;
    const std::string& from = text.text;
    std::string result;
    result.reserve(from.size() + from.size() / 8);
    for (size_t at = 0; at < from.size();) {
      const bool first = at == 0;
      at = append_cluster(from, at, result);
      if (first && result.empty()) text.keeps_start = false;
    }
    text.text = std::move(result);
  }

 private:
  size_t append_cluster(std::string_view from, size_t at, std::string& result) const {
    const auto is_plain = [&](size_t i) {
      return static_cast<uint8_t>(from[i]) < 0x80 && plain_[static_cast<uint8_t>(from[i])];
    };
    const bool alone = at + 1 == from.size() || static_cast<uint8_t>(from[at + 1]) < 0x80;
    if (is_plain(at) && alone && from[at] != '\r') {
      result.push_back(from[at]);
      return at + 1;
    }
    const size_t end = grapheme_end(from, at);
    std::string_view replacement;
    if (end - at <= kLongestCluster && find(from.substr(at, end - at), replacement)) {
      result += replacement;
      return end;
    }
    for (size_t next = at; at < end; at = next) {
      next = at + character_bytes(from[at]);
      const std::string_view character = from.substr(at, next - at);
      result += find(character, replacement) ? replacement : character;
    }
    return end;
  }

  // The replacement of the shortest prefix that has one.
  bool find(std::string_view key, std::string_view& replacement) const {
    if (units_.empty()) return false;
    size_t node = DartsUnit(units_[0]).offset();
    for (const char c : key) {
      const auto byte = static_cast<uint8_t>(c);
      if (byte == 0) return false;
      node ^= byte;
      if (node >= units_.size()) return false;
      const DartsUnit unit(units_[node]);
      if (unit.label() != byte) return false;
      node ^= unit.offset();
      if (!unit.has_leaf()) continue;
      if (node >= units_.size()) return false;
      const size_t begin = DartsUnit(units_[node]).value();
      if (begin > replacements_.size()) return false;
      replacement = std::string_view(replacements_).substr(begin);
      replacement = replacement.substr(0, replacement.find('\0'));
      return !replacement.empty() || begin < replacements_.size();
    }
    return false;
  }

  std::vector<uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> plain_{};  // characters of ASCII that stay as they are
};

}  // namespace

std::unique_ptr<Normalizer> precompiled_normalizer(const std::string& base64, const std::string& where) {
  return std::make_unique<Precompiled>(decode_base64(base64, where), where);
}

}  // namespace attune::huggingface
