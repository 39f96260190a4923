#include "attune/text/huggingface/bpe.h"

#include <algorithm>
#include <bit>
#include <random>

#include "attune/base/cut_text.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

constexpr size_t kShortWord = 48;  // symbols; for longer words a heap is faster than looking at all pairs

struct Symbol {
  int32_t token, previous, next;  // -1: none; token -1: was merged into its left neighbour
};

struct Candidate {
  int32_t rank, position, token;
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

struct Bpe::Scratch final : Workspace {
  std::vector<int32_t> tokens;  // of the characters
  std::vector<Merge> pairs;     // what each and its right neighbour become
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::string buffer;
};

MergeTable::MergeTable(size_t expected)
    : slots_(std::bit_ceil(2 * expected + 2)), mask_(slots_.size() - 1), shift_(std::countl_zero(mask_)) {
  std::random_device random;
  multiplier_ = uint64_t{random()} << 32 | random() | 1;
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t slot = slot_of(key);
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask_;
  slots_[slot] = {key, merge};
}

Bpe::Bpe(TokenMap vocabulary, MergeTable merges, const BpeOptions& options)
    : Model(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(options),
      unknown_(options.unknown.empty() ? TokenMap::kMissing : vocabulary_.find(options.unknown)),
      byte_tokens_(vocabulary_) {
  for (size_t c = 0; c < 128; ++c) ascii_symbols_[c] = vocabulary_.find(std::string(1, static_cast<char>(c)));
  byte_symbols_.fill(TokenMap::kMissing);
}

std::unique_ptr<Workspace> Bpe::make_workspace() const {
  return std::make_unique<Scratch>();
}

bool Bpe::take_bytes() {
  if (!options_.continuation_prefix.empty() || !options_.end_suffix.empty()) return false;
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, character_of_byte(static_cast<uint8_t>(byte)));
    byte_symbols_[byte] = vocabulary_.find(character);
    // What is unknown goes the general way, character by character.
    if (byte_symbols_[byte] < 0 && (unknown_ >= 0 || options_.byte_fallback)) return false;
  }
  if (options_.ignore_merges) {
    byte_words_.reserve(vocabulary_.size());
    std::string bytes;
    for (int32_t id = 0; id <= vocabulary_.highest_id(); ++id)
      if (vocabulary_.has(id) && bytes_of_characters(vocabulary_.token(id), bytes)) byte_words_.insert(bytes, id);
  }
  takes_bytes_ = true;
  cut_at_metaspace_ = false;  // the bytes of U+2581 are tokens like any other
  return true;
}

int32_t Bpe::symbol(std::string_view character, bool first, bool last, std::string& buffer) const {
  const bool prefixed = !first && !options_.continuation_prefix.empty();
  const bool suffixed = last && !options_.end_suffix.empty();
  if (!prefixed && !suffixed) {
    if (character.size() == 1) return ascii_symbols_[static_cast<uint8_t>(character[0])];
    return vocabulary_.find(character);
  }
  buffer = prefixed ? options_.continuation_prefix : "";
  buffer += character;
  if (suffixed) buffer += options_.end_suffix;
  return vocabulary_.find(buffer);
}

void Bpe::append_symbols(std::string_view word, Scratch& scratch) const {
  scratch.tokens.clear();
  if (takes_bytes_) {
    for (const char byte : word)
      if (const int32_t id = byte_symbols_[static_cast<uint8_t>(byte)]; id >= 0) scratch.tokens.push_back(id);
    return;
  }
  bool pending = false;  // an unknown token that the next may join
  for (size_t at = 0; at < word.size();) {
    const size_t next = std::min(at + character_bytes(word[at]), word.size());
    const std::string_view character = word.substr(at, next - at);
    const bool first = at == 0, last = next == word.size();
    const int32_t id = symbol(character, first, last, scratch.buffer);
    at = next;
    if (id >= 0) {
      if (std::exchange(pending, false)) scratch.tokens.push_back(unknown_);
      scratch.tokens.push_back(id);
      continue;
    }
    if (options_.byte_fallback) {  // with prefix and suffix, as they were looked up
      const bool plain = (first || options_.continuation_prefix.empty()) && (!last || options_.end_suffix.empty());
      if (byte_tokens_.append(plain ? character : std::string_view(scratch.buffer), scratch.tokens)) continue;
    }
    if (options_.unknown.empty()) continue;
    if (unknown_ < 0)
      fail<DataError>("cannot tokenize \"{}\": the unknown token \"{}\" is not in the vocabulary", character,
                      options_.unknown);
    if (std::exchange(pending, true) && !options_.fuse_unknown) scratch.tokens.push_back(unknown_);
  }
  if (pending) scratch.tokens.push_back(unknown_);
}

void Bpe::merge_short(Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& tokens = scratch.tokens;
  auto& pairs = scratch.pairs;
  pairs.resize(tokens.size());
  for (size_t i = 0; i + 1 < tokens.size(); ++i) pairs[i] = merges_.find(tokens[i], tokens[i + 1]);
  size_t count = tokens.size();
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i)
      if (pairs[i].rank < pairs[best].rank) best = i;
    if (pairs[best].rank == INT32_MAX) break;
    tokens[best] = pairs[best].token;
    std::copy(tokens.begin() + static_cast<ptrdiff_t>(best) + 2, tokens.begin() + static_cast<ptrdiff_t>(count),
              tokens.begin() + static_cast<ptrdiff_t>(best) + 1);
    std::copy(pairs.begin() + static_cast<ptrdiff_t>(best) + 1, pairs.begin() + static_cast<ptrdiff_t>(count) - 1,
              pairs.begin() + static_cast<ptrdiff_t>(best));
    --count;
    if (best > 0) pairs[best - 1] = merges_.find(tokens[best - 1], tokens[best]);
    if (best + 1 < count) pairs[best] = merges_.find(tokens[best], tokens[best + 1]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
}

void Bpe::merge_long(Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto count = static_cast<int32_t>(scratch.tokens.size());
  symbols.clear();
  heap.clear();
  for (int32_t i = 0; i < count; ++i)
    symbols.push_back({scratch.tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  const auto at = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto offer = [&](int32_t left) {
    const Merge merge = merges_.find(at(left).token, at(at(left).next).token);
    if (merge.rank == INT32_MAX) return false;
    heap.push_back({merge.rank, left, merge.token});
    return true;
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = at(top.position);
    if (left.token < 0 || left.next < 0) continue;
    Symbol& right = at(left.next);
    if (merges_.find(left.token, right.token).token != top.token) continue;  // one of the two has changed since
    left.token = top.token;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = top.position;
    if (left.previous >= 0 && offer(left.previous)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
    if (left.next >= 0 && offer(top.position)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  for (int32_t i = 0; i >= 0; i = at(i).next) ids.push_back(at(i).token);
}

void Bpe::encode_new(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges)
    if (const int32_t id = (takes_bytes_ ? byte_words_ : vocabulary_).find(word); id >= 0) return ids.push_back(id);
  auto& scratch = static_cast<Scratch&>(workspace);
  append_symbols(word, scratch);
  if (scratch.tokens.empty()) return;
  scratch.tokens.size() <= kShortWord ? merge_short(scratch, ids) : merge_long(scratch, ids);
}

std::unique_ptr<Model> make_bpe(TokenMap vocabulary, const StringList& merges, bool are_pairs,
                                const BpeOptions& options, const std::string& where) {
  const size_t count = are_pairs ? merges.size() / 2 : merges.size();
  MergeTable table(count);
  bool inside = false;  // whether a merge has U+2581 behind another character
  std::string merged;
  for (size_t i = 0; i < count; ++i) {
    std::string_view left, right;
    if (are_pairs) {
      left = merges[2 * i];
      right = merges[2 * i + 1];
    } else {
      const size_t space = merges[i].find(' ');
      if (space == std::string_view::npos || merges[i].find(' ', space + 1) != std::string_view::npos)
        fail<FileError>("{}, entry {}: is \"{}\", expected two tokens and a space", where, i, cut_text(merges[i], 100));
      left = merges[i].substr(0, space);
      right = merges[i].substr(space + 1);
    }
    const size_t cut = std::min(options.continuation_prefix.size(), right.size());
    merged = left;
    merged += right.substr(cut);
    const int32_t ids[] = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(merged)};
    for (size_t k = 0; k < 3; ++k)
      if (ids[k] < 0)
        fail<FileError>("{}, entry {}: token \"{}\" is not in the vocabulary", where, i,
                        cut_text(k == 0   ? left
                                 : k == 1 ? right
                                          : std::string_view(merged),
                                 100));
    table.insert(ids[0], ids[1], {static_cast<int32_t>(i), ids[2]});
    inside |= right.starts_with(kMetaspace) && !left.ends_with(kMetaspace);
  }
  const bool cut = !inside && !options.ignore_merges && options.continuation_prefix.empty() &&
                   options.end_suffix.empty() && vocabulary.find(kMetaspace) >= 0;
  auto bpe = std::make_unique<Bpe>(std::move(vocabulary), std::move(table), options);
  if (cut) bpe->set_cut_at_metaspace();
  return bpe;
}

std::unique_ptr<Model> read_bpe(const Fields& fields, TokenizerJson& file) {
  if (const auto* dropout = fields.find("dropout"); dropout != nullptr && *dropout != 0)
    fields.refuse("dropout", "none, since tokens would be random");
  BpeOptions options;
  options.unknown = fields.string("unk_token", "");
  options.continuation_prefix = fields.string("continuing_subword_prefix", "");
  options.end_suffix = fields.string("end_of_word_suffix", "");
  options.fuse_unknown = fields.boolean("fuse_unk", false);
  options.byte_fallback = fields.boolean("byte_fallback", false);
  options.ignore_merges = fields.boolean("ignore_merges", false);
  return make_bpe(token_map(file.vocabulary, fields.where("vocab")), file.merges, file.merges_are_pairs, options,
                  fields.where("merges"));
}

}  // namespace attune::huggingface
