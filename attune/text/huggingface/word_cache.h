#pragma once
// The tokens of words that came before. A word takes the place of another with the same slot. Where that happens often,
// there are more slots from then on, up to 2 MiB: a short text costs little memory.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "attune/text/huggingface/token_map.h"

namespace attune::huggingface {

class WordCache {
 public:
  static constexpr size_t kLongestWord = 26;  // bytes
  static constexpr size_t kMostTokens = 9;

  /// Appends the tokens of a word and returns true, or returns false. `hash` is hash_of(word).
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t>& ids) const {
    if (slots_.empty() || word.size() > kLongestWord) return false;
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.bytes != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) return false;
    ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (word.empty() || word.size() > kLongestWord || ids.size() > kMostTokens) return;
    if (replaced_ >= slots_.size() / 4 && slots_.size() < kMostSlots) grow();
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.bytes != 0) ++replaced_;
    slot.bytes = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(ids.size());
    std::memcpy(slot.word.data(), word.data(), word.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr size_t kFirstSlots = size_t{1} << 9, kGrowth = 8, kMostSlots = size_t{1} << 15;
  struct Slot {
    std::array<int32_t, kMostTokens> ids;
    uint8_t bytes = 0, count = 0;  // bytes = 0: free
    std::array<char, kLongestWord> word;
  };
  static_assert(sizeof(Slot) == 64);

  // Forgets all words, which come again.
  void grow() {
    slots_ = std::vector<Slot>(slots_.empty() ? kFirstSlots : slots_.size() * kGrowth);
    replaced_ = 0;
  }

  std::vector<Slot> slots_;  // a power of two
  size_t replaced_ = 0;      // words that took the place of others since the last grow()
};

}  // namespace attune::huggingface
