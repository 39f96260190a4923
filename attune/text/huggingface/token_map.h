#pragma once
// The strings of a vocabulary and their ids.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::huggingface {

/// A 64-bit hash of a string. Strings can be chosen to share one; TokenMap::insert() refuses a file with many of them.
uint64_t hash_of(std::string_view text);

/// Strings to ids and back. All strings are in one block of memory.
class TokenMap {
 public:
  static constexpr int32_t kMissing = -1;

  /// `expected`: how many entries will come.
  void reserve(size_t expected);

  /// Gives the string this id (0 or more). A string that is there already gets the new id; returns whether it was new.
  /// Throws FileError when too many strings share one place of the hash table.
  bool insert(std::string_view token, int32_t id);

  /// The id of a string, kMissing when there is none.
  int32_t find(std::string_view token) const;

  /// The string of an id; "" when there is none.
  std::string_view token(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < entry_of_id_.size() ? string(entry_of_id_[static_cast<size_t>(id)])
                                                                    : std::string_view();
  }
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < entry_of_id_.size() && entry_of_id_[static_cast<size_t>(id)] >= 0;
  }

  size_t size() const { return ids_.size(); }                                           // strings
  int32_t highest_id() const { return static_cast<int32_t>(entry_of_id_.size()) - 1; }  // -1: none

 private:
  std::string_view string(int32_t entry) const {
    if (entry < 0) return {};
    const auto e = static_cast<size_t>(entry);
    const uint32_t begin = e == 0 ? 0 : ends_[e - 1];
    return std::string_view(bytes_).substr(begin, ends_[e] - begin);
  }
  void grow(size_t slots);
  size_t slot_of(std::string_view token) const;

  std::string bytes_;
  std::vector<uint32_t> ends_;        // of the strings in bytes_
  std::vector<int32_t> ids_;          // of the entries
  std::vector<int32_t> entry_of_id_;  // -1: none
  std::vector<int32_t> slots_;        // entries by hash, -1: free; a power of two, at most half full
};

}  // namespace attune::huggingface
