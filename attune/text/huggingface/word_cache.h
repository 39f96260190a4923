#pragma once
// The tokens of words that came before. Bounded: a word takes the place of another with the same slot.

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
    const Slot& slot = slots_[hash & (kSlots - 1)];
    if (slot.bytes != word.size() || std::memcmp(slot.word.data(), word.data(), word.size()) != 0) return false;
    ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (word.empty() || word.size() > kLongestWord || ids.size() > kMostTokens) return;
    if (slots_.empty()) slots_.resize(kSlots);
    Slot& slot = slots_[hash & (kSlots - 1)];
    slot.bytes = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(ids.size());
    std::memcpy(slot.word.data(), word.data(), word.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 15;  // 2 MiB
  struct Slot {
    std::array<int32_t, kMostTokens> ids;
    uint8_t bytes = 0, count = 0;  // bytes = 0: free
    std::array<char, kLongestWord> word;
  };
  static_assert(sizeof(Slot) == 64);
  std::vector<Slot> slots_;
};

}  // namespace attune::huggingface
