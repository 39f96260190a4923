#pragma once
// What the attention kernels read, as pointers into the memory of the device.

#include <algorithm>
#include <utility>
#include <vector>

#include "attune/kernels/attention/attention.h"
#include "attune/kernels/cuda/attention/attention_pairs.h"
#include "attune/kernels/cuda/attention/attention_terms.h"
#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/for_dtype.h"

namespace attune::cuda {

/// Whether rows of so many numbers, one after the other, begin at multiples of 16 bytes.
template <class T>
ATTUNE_HOST_DEVICE bool is_aligned(const T* first, int64_t row) {
  return reinterpret_cast<uintptr_t>(first) % 16 == 0 && row * sizeof(T) % 16 == 0;
}

/// The heads of HeadColumns: head h of row r begins at first + r * row + h * d.
template <class T>
struct HeadsView {
  T* first;
  int64_t row;
  int d;
  bool aligned;  // each head of each row begins at a multiple of 16 bytes, and is one

  HeadsView(const HeadColumns& part)  // NOLINT: the same in another form
      : first(part.x.data<T>() + part.column),
        row(part.x.size(1)),
        d(static_cast<int>(part.d)),
        aligned(is_aligned(first, row) && is_aligned(first, d)) {}
  ATTUNE_DEVICE T* at(int64_t r, int head) const { return first + r * row + int64_t{head} * d; }
};

/// AttentionInputs without offsets.
template <class Tiles>
struct AttentionView {
  HeadsView<typename Tiles::Source> q, k, v;
  int heads, group;                   // query heads, and those that share a key head
  const uint8_t* mask;                // or null
  int64_t mask_sequence, mask_query;  // from one to the next
  AttentionTerms<typename Tiles::Sum> terms;
  DropoutBits dropout;

  ATTUNE_DEVICE bool masked(int sequence, int query, int key) const {
    return mask != nullptr && mask[sequence * mask_sequence + query * mask_query + key] == 0;
  }
};

/// AttentionInputs in the memory of the device, with the passes over them.
template <class Tiles>
class AttentionCall {
 public:
  using T = typename Tiles::Sum;
  struct Pass {
    AttentionPass pass;
    const TileOfSequence* queries;
    const TileOfSequence* keys;
    int64_t query_count, key_count;
  };

  AttentionCall(Cuda device, const AttentionInputs& in)
      : slopes_(slopes_on<T>(device, in.slopes)), view_(view_of(in, slopes_)) {
    int64_t longest = 0;
    for (size_t s = 0; s + 1 < in.key_offsets.size(); ++s)
      longest = std::max<int64_t>(longest, in.key_offsets[s + 1] - in.key_offsets[s]);
    const size_t query_offsets = tables_.add(in.query_offsets), key_offsets = tables_.add(in.key_offsets);
    std::vector<std::pair<size_t, size_t>> tiles_of_passes;
    for (const AttentionPass& pass : attention_passes(in.pattern, in.causal, longest)) {
      const PassTiles tiles = attention_tiles(pass, in.query_offsets, in.key_offsets);
      tiles_of_passes.emplace_back(tables_.add<TileOfSequence>(tiles.queries), tables_.add<TileOfSequence>(tiles.keys));
      passes_.push_back({pass, nullptr, nullptr, std::ssize(tiles.queries), std::ssize(tiles.keys)});
    }
    tables_.copy_to(device);
    query_offsets_ = tables_.template at<int32_t>(query_offsets);
    key_offsets_ = tables_.template at<int32_t>(key_offsets);
    for (size_t i = 0; i < passes_.size(); ++i) {
      passes_[i].queries = tables_.template at<TileOfSequence>(tiles_of_passes[i].first);
      passes_[i].keys = tables_.template at<TileOfSequence>(tiles_of_passes[i].second);
    }
  }

  const AttentionView<Tiles>& view() const { return view_; }
  const int32_t* query_offsets() const { return query_offsets_; }
  const int32_t* key_offsets() const { return key_offsets_; }
  const std::vector<Pass>& passes() const { return passes_; }

 private:
  static AttentionView<Tiles> view_of(const AttentionInputs& in, const Tensor& slopes) {
    const bool masked = in.mask.defined();
    return {.q = in.q,
            .k = in.k,
            .v = in.v,
            .heads = static_cast<int>(in.q.heads),
            .group = static_cast<int>(in.q.heads / in.k.heads),
            .mask = data_or_null<uint8_t>(in.mask),
            .mask_sequence = masked && in.mask.size(0) > 1 ? in.mask.size(1) * in.mask.size(2) : 0,
            .mask_query = masked ? in.mask.size(2) : 0,
            .terms = terms_of<T>(in, in.q.heads, slopes),
            .dropout = DropoutBits(in.dropout)};
  }

  Tensor slopes_;
  PackedTables tables_;  // offsets, and the tiles of all passes
  const int32_t* query_offsets_ = nullptr;
  const int32_t* key_offsets_ = nullptr;
  AttentionView<Tiles> view_;
  std::vector<Pass> passes_;
};

}  // namespace attune::cuda
