#include "attune/text/sentence_piece_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "attune/base/fail.h"
#include "attune/text/darts_unit.h"
#include "attune/text/sentence_piece_wire.h"
#include "attune/text/text_file.h"

namespace attune {
namespace {

constexpr size_t kMaxModelPieces = size_t{1} << 20;
constexpr size_t kMaxPieceBytes = 1024;         // the trie builder recurses once a byte
constexpr size_t kMaxNestedSymbols = 64;        // kResultSize in PrefixMatcher::PrefixMatch
constexpr size_t kMaxNestedRules = 31;          // below kMaxTrieResultsSize of Normalizer
constexpr size_t kMaxCharsmapBytes = 2u << 20;  // SentencePiece's own are about 300 KiB
constexpr size_t kMaxReplacementBytes = 128;    // of one rule; the longest of Unicode's NFKC has 33

/// Fails unless the field has the wire type that the schema gives it.
void check_type(const WireField& field, uint32_t type, const char* what, const std::string& name) {
  if (field.type != type) fail<FileError>("{}: {} has wire type {}, expected {}", name, what, field.type, type);
}

/// A ModelProto.SentencePiece. Returns its text when it is a user-defined symbol.
std::optional<std::string_view> check_piece(std::string_view message, size_t id, const std::string& name) {
  enum { normal = 1, user_defined = 4, last_type = 6 };
  std::string_view text;
  uint64_t kind = normal;
  WireReader reader(message, name);
  while (const auto field = reader.next()) {
    if (field->number == 1) {
      check_type(*field, 2, "the text of a piece", name);
      text = field->bytes;
    } else if (field->number == 2) {
      check_type(*field, 5, "the score of a piece", name);
      if (!std::isfinite(std::bit_cast<float>(static_cast<uint32_t>(field->value))))
        fail<FileError>("{}: the score of piece {} is not finite", name, id);
    } else if (field->number == 3) {
      check_type(*field, 0, "the type of a piece", name);
      kind = field->value;
      if (kind < normal || kind > last_type) fail<FileError>("{}: piece {} has the unknown type {}", name, id, kind);
    }
  }
  if (text.empty()) fail<FileError>("{}: piece {} is empty", name, id);
  if (text.size() > kMaxPieceBytes)
    fail<FileError>("{}: piece {} has {} bytes, at most {} are accepted", name, id, text.size(), kMaxPieceBytes);
  if (text.find('\0') != std::string_view::npos || !valid_utf8(text))
    fail<FileError>("{}: piece {} is not valid UTF-8 text", name, id);
  return kind == user_defined ? std::optional(text) : std::nullopt;
}

/// SentencePiece collects the symbols that are prefixes of one another in an array of fixed length.
void check_nesting(std::vector<std::string_view> symbols, const std::string& name) {
  std::sort(symbols.begin(), symbols.end());
  std::vector<std::string_view> prefixes;
  for (const std::string_view symbol : symbols) {
    while (!prefixes.empty() && !symbol.starts_with(prefixes.back())) prefixes.pop_back();
    prefixes.push_back(symbol);
    if (prefixes.size() > kMaxNestedSymbols)
      fail<FileError>("{}: more than {} user-defined symbols are prefixes of one another", name, kMaxNestedSymbols);
  }
}

/// The trie maps the start of a text to the place of its replacement. From every state that a text can lead to, any
/// next byte has to stay inside the trie, and every place has to be inside the replacements.
void check_trie(const std::vector<uint32_t>& units, std::string_view replacements, const std::string& name) {
  std::vector<uint8_t> reached(units.size(), 0);  // 0, or 1 + the most rules that end on a way to this unit
  std::vector<uint32_t> open{0};
  reached.front() = 1;
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    const DartsUnit unit(units[state]);
    const uint32_t base = state ^ unit.offset();
    if ((base | 0xFF) >= units.size()) fail<FileError>("{}: the normalizer's trie leads outside of itself", name);
    uint8_t rules = reached[state];
    if (state != 0 && unit.has_leaf()) {
      const uint32_t place = DartsUnit(units[base]).value();
      if (place >= replacements.size()) fail<FileError>("{}: a normalizer rule lies outside of its table", name);
      if (replacements.substr(place, kMaxReplacementBytes + 1).find('\0') == std::string_view::npos)
        fail<FileError>("{}: a normalizer rule has more than {} bytes", name, kMaxReplacementBytes);
      if (++rules > kMaxNestedRules + 1) fail<FileError>("{}: too many normalizer rules start alike", name);
    }
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t child = base ^ byte;
      if (DartsUnit(units[child]).label() != byte || reached[child] >= rules) continue;
      reached[child] = rules;
      open.push_back(child);
    }
  }
}

/// A NormalizerSpec, whose precompiled_charsmap is: bytes of the trie (uint32), the trie, replacements that each end in
/// 0.
void check_normalizer(std::string_view message, const std::string& name) {
  WireReader reader(message, name);
  while (const auto field = reader.next()) {
    if (field->number != 2) continue;
    check_type(*field, 2, "the normalizer's table", name);
    const std::string_view map = field->bytes;
    if (map.empty()) continue;
    uint32_t trie_bytes = 0;
    if (map.size() > kMaxCharsmapBytes)
      fail<FileError>("{}: the normalizer's table has {} bytes, at most {} are accepted", name, map.size(),
                      kMaxCharsmapBytes);
    if (map.size() > sizeof trie_bytes) std::memcpy(&trie_bytes, map.data(), sizeof trie_bytes);
    if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= map.size() - sizeof trie_bytes || map.back() != '\0')
      fail<FileError>("{}: the normalizer's table is damaged", name);
    std::vector<uint32_t> units(trie_bytes / 4);
    std::memcpy(units.data(), map.data() + sizeof trie_bytes, trie_bytes);
    check_trie(units, map.substr(sizeof trie_bytes + trie_bytes), name);
  }
}

void check_trainer(std::string_view message, const std::string& name) {
  WireReader reader(message, name);
  while (const auto field = reader.next()) {
    if (field->number == 3) {
      check_type(*field, 0, "the model type", name);
      if (field->value < 1 || field->value > 4) fail<FileError>("{}: the model type {} is unknown", name, field->value);
    } else if (field->number == 35) {
      check_type(*field, 0, "byte_fallback", name);
    } else if (field->number == 44 && !valid_utf8(field->bytes)) {
      fail<FileError>("{}: the text for unknown tokens is not valid UTF-8", name);
    }
  }
}

}  // namespace

std::string checked_sentence_piece_model(std::string_view model, const std::string& name) {
  enum { pieces = 1, trainer = 2, normalizer = 3, self_test = 4, denormalizer = 5 };
  std::string kept;
  kept.reserve(model.size());
  size_t count = 0;
  std::vector<std::string_view> symbols;
  WireReader reader(model, name);
  while (const auto field = reader.next()) {
    if (field->number <= denormalizer) check_type(*field, 2, "a part of the model", name);
    if (field->number == pieces) {
      if (++count > kMaxModelPieces) fail<FileError>("{}: has more than {} pieces", name, kMaxModelPieces);
      if (const auto symbol = check_piece(field->bytes, count - 1, name)) symbols.push_back(*symbol);
    } else if (field->number == trainer) {
      check_trainer(field->bytes, name);
    } else if (field->number == normalizer || field->number == denormalizer) {
      check_normalizer(field->bytes, name);
    }
    if (field->number != self_test) kept += field->whole;
  }
  if (count == 0) fail<FileError>("{}: not a SentencePiece model: it has no pieces", name);
  check_nesting(std::move(symbols), name);
  return kept;
}

}  // namespace attune
