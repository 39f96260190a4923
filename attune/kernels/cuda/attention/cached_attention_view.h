#pragma once
// What the kernels of cached attention read and write: the visible keys of each row, in pieces.

#include <cstdint>

#include "attune/kernels/attention/cached_attention.h"
#include "attune/kernels/cuda/attention/attention_terms.h"
#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

inline constexpr int kMostKeysOfPiece = 256;

/// How many keys a piece has in a row that sees `visible` keys. Pieces are worked on at the same time: those of short
/// rows are small, so that one sequence alone has work for the whole GPU. The size depends on the row alone, since the
/// result of a row must not depend on other rows.
ATTUNE_HOST_DEVICE int piece_size(int visible) {
  return visible <= 1024 ? 64 : visible <= 4096 ? 128 : kMostKeysOfPiece;
}

/// An AttentionPattern as VisibleKeys reads it.
struct CachedPattern {
  enum class Kind { run, strided, fixed };
  Kind kind;
  int size, summary;
};

/// The keys that the last position of a sequence sees, numbered without gaps in ascending order: first the gathered
/// ones, then a run that ends with the position itself.
class VisibleKeys {
 public:
  ATTUNE_HOST_DEVICE VisibleKeys(const CachedPattern& pattern, int length) : pattern_(pattern) {
    if (length == 0) return;
    const int position = length - 1;
    const int blocks = position / pattern.size;
    run_ = pattern.kind == CachedPattern::Kind::fixed ? blocks * pattern.size
           : length > pattern.size                    ? length - pattern.size
                                                      : 0;
    if (pattern.kind == CachedPattern::Kind::strided) gathered_ = blocks;
    if (pattern.kind == CachedPattern::Kind::fixed) gathered_ = blocks * pattern.summary;
    residue_ = position % pattern.size;
    count_ = gathered_ + length - run_;
  }

  ATTUNE_HOST_DEVICE int count() const { return count_; }
  ATTUNE_HOST_DEVICE int position(int i) const {
    if (i >= gathered_) return run_ + i - gathered_;
    if (pattern_.kind == CachedPattern::Kind::strided) return residue_ + i * pattern_.size;
    return i / pattern_.summary * pattern_.size + pattern_.size - pattern_.summary + i % pattern_.summary;
  }

 private:
  CachedPattern pattern_;
  int run_ = 0, gathered_ = 0, residue_ = 0, count_ = 0;
};

/// The slots of a query row, and its pieces.
struct CachedRow {
  int32_t first_slot, length;
  int32_t first_piece, pieces;
};

/// Visible keys first ... first + count - 1 of a row.
struct CachedPiece {
  int32_t row, first, count;
};

/// Columns of the rows of a cache.
template <class T>
struct PagesView {
  const T* const* blocks;
  int64_t width, head_width;
  ATTUNE_DEVICE const T* row(int slot, int head) const {
    return blocks[slot / Pages::kBlockRows] + slot % Pages::kBlockRows * width + head * head_width;
  }
};

/// What the kernels read and write. Partial results are [pieces, heads, ...].
template <class T>
struct CachedView {
  AttentionTerms<T> terms;
  CachedPattern pattern;
  int group, kv_heads, d_k, d_v;
  const T* q;
  PagesView<T> keys, values;
  const int32_t* slots;
  const CachedRow* rows;
  const CachedPiece* pieces;
  T* largest;  // score of a piece; later the factor exp(largest of the piece - largest of the row)
  T* sums;     // of exp(score - largest)
  T* partial;  // sums of values, each times exp(score - largest)
  T* weights;  // [rows, heads, most_keys], or null
  int64_t most_keys;
  T* out;
};

}  // namespace attune::cuda
