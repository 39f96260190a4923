#pragma once
// Where each sequence of a packed batch lies: rows [total_tokens, ...] without padding, and an offset per sequence.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

class Sequences {
 public:
  Sequences() = default;  // no sequences
  /// Offsets 0 = o_0 <= o_1 <= ... <= o_n; sequence i has rows [o_i, o_{i+1}). Throws ShapeError.
  static Sequences from_offsets(std::vector<int32_t> offsets);
  static Sequences from_lengths(const std::vector<int32_t>& lengths);

  int64_t count() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t total() const { return offsets_.back(); }
  int64_t begin(int64_t i) const { return offsets_[static_cast<size_t>(i)]; }
  int64_t length(int64_t i) const { return offsets_[static_cast<size_t>(i) + 1] - offsets_[static_cast<size_t>(i)]; }
  int64_t max_length() const;
  const std::vector<int32_t>& offsets() const { return offsets_; }
  /// The position of each row in its sequence: 0 1 2 0 1 0 1 2 3 ...
  std::vector<int32_t> positions() const;
  bool operator==(const Sequences&) const = default;

 private:
  std::vector<int32_t> offsets_ = {0};
};

}  // namespace attune
