#include "attune/text/huggingface/token_map.h"

#include <bit>
#include <cstring>

#include "attune/base/fail.h"

namespace attune::huggingface {
namespace {

constexpr size_t kLongestWay = 1024;  // from the slot of a hash to that of a string; chance makes it a tenth of that

}  // namespace

uint64_t hash_of(std::string_view text) {
  constexpr uint64_t multiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = text.size() * multiplier;
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t block = 0;
    std::memcpy(&block, at, 8);
    hash = (hash ^ block) * multiplier;
    hash ^= hash >> 32;
  }
  if (left > 0) {
    uint64_t block = 0;
    std::memcpy(&block, at, left);
    hash = (hash ^ block) * multiplier;
    hash ^= hash >> 32;
  }
  hash *= 0xD6E8FEB86659FD93;
  return hash ^ (hash >> 29);
}

void TokenMap::reserve(size_t expected) {
  ends_.reserve(expected);
  ids_.reserve(expected);
  entry_of_id_.reserve(expected);
  if (const size_t slots = std::bit_ceil(2 * expected + 2); slots > slots_.size()) grow(slots);
}

size_t TokenMap::slot_of(std::string_view token) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_of(token) & mask;
  while (slots_[slot] >= 0 && string(slots_[slot]) != token) slot = (slot + 1) & mask;
  return slot;
}

void TokenMap::grow(size_t slots) {
  slots_.assign(slots, -1);
  for (size_t entry = 0; entry < ids_.size(); ++entry)
    slots_[slot_of(string(static_cast<int32_t>(entry)))] = static_cast<int32_t>(entry);
}

bool TokenMap::insert(std::string_view token, int32_t id) {
  if (2 * (ids_.size() + 1) > slots_.size()) grow(std::bit_ceil(2 * ids_.size() + 16));
  const size_t slot = slot_of(token);
  if (((slot - hash_of(token)) & (slots_.size() - 1)) > kLongestWay)  // or a file could make this quadratic
    fail<FileError>("the vocabulary has more than {} tokens that share one place of its hash table", kLongestWay);
  const bool is_new = slots_[slot] < 0;
  if (is_new) {
    slots_[slot] = static_cast<int32_t>(ids_.size());
    bytes_.append(token);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    ids_.push_back(id);
  } else {
    ids_[static_cast<size_t>(slots_[slot])] = id;
  }
  if (static_cast<size_t>(id) >= entry_of_id_.size()) entry_of_id_.resize(static_cast<size_t>(id) + 1, -1);
  entry_of_id_[static_cast<size_t>(id)] = slots_[slot];
  return is_new;
}

int32_t TokenMap::find(std::string_view token) const {
  if (slots_.empty()) return kMissing;
  const int32_t entry = slots_[slot_of(token)];
  return entry < 0 ? kMissing : ids_[static_cast<size_t>(entry)];
}

}  // namespace attune::huggingface
