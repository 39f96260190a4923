#pragma once
// What the attention kernels read, as pointers into the memory of the device.

#include <algorithm>
#include <vector>

#include "attune/kernels/attention.h"
#include "attune/kernels/cuda/attention_pairs.h"
#include "attune/kernels/cuda/attention_terms.h"
#include "attune/kernels/cuda/dropout_bits.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/for_dtype.h"

namespace attune::cuda {

/// The heads of HeadColumns: head h of row r begins at first + r * row + h * d.
template <class T>
struct HeadsView {
  T* first;
  int64_t row;
  int d;

  HeadsView(const HeadColumns& part)  // NOLINT: the same in another form
      : first(part.x.data<T>() + part.column), row(part.x.size(1)), d(static_cast<int>(part.d)) {}
  ATTUNE_DEVICE T* at(int64_t r, int head) const { return first + r * row + int64_t{head} * d; }
};

/// AttentionInputs without offsets.
template <class T>
struct AttentionView {
  HeadsView<T> q, k, v;
  int heads, group;                   // query heads, and those that share a key head
  const uint8_t* mask;                // or null
  int64_t mask_sequence, mask_query;  // from one to the next
  AttentionTerms<T> terms;
  DropoutBits dropout;

  ATTUNE_DEVICE bool masked(int sequence, int query, int key) const {
    return mask != nullptr && mask[sequence * mask_sequence + query * mask_query + key] == 0;
  }
};

/// AttentionInputs in the memory of the device, with the passes over them.
template <class T>
class AttentionCall {
 public:
  struct Pass {
    AttentionPass pass;
    Tensor query_tiles, key_tiles;  // of TileOfSequence, as bytes
    int64_t query_count, key_count;

    const TileOfSequence* queries() const { return static_cast<const TileOfSequence*>(query_tiles.raw()); }
    const TileOfSequence* keys() const { return static_cast<const TileOfSequence*>(key_tiles.raw()); }
  };

  AttentionCall(Cuda device, const AttentionInputs& in)
      : query_offsets_(on_device(device, in.query_offsets)),
        key_offsets_(on_device(device, in.key_offsets)),
        slopes_(slopes_on<T>(device, in.slopes)),
        view_(view_of(in, slopes_)) {
    int64_t longest = 0;
    for (size_t s = 0; s + 1 < in.key_offsets.size(); ++s)
      longest = std::max<int64_t>(longest, in.key_offsets[s + 1] - in.key_offsets[s]);
    for (const AttentionPass& pass : attention_passes(in.pattern, in.causal, longest)) {
      const PassTiles tiles = attention_tiles(pass, in.query_offsets, in.key_offsets);
      passes_.push_back({pass, structs_on_device<TileOfSequence>(device, tiles.queries),
                         structs_on_device<TileOfSequence>(device, tiles.keys),
                         static_cast<int64_t>(tiles.queries.size()), static_cast<int64_t>(tiles.keys.size())});
    }
  }

  const AttentionView<T>& view() const { return view_; }
  const int32_t* query_offsets() const { return query_offsets_.template data<int32_t>(); }
  const int32_t* key_offsets() const { return key_offsets_.template data<int32_t>(); }
  const std::vector<Pass>& passes() const { return passes_; }

 private:
  static AttentionView<T> view_of(const AttentionInputs& in, const Tensor& slopes) {
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

  Tensor query_offsets_, key_offsets_, slopes_;
  AttentionView<T> view_;
  std::vector<Pass> passes_;
};

}  // namespace attune::cuda
