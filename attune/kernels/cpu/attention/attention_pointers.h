#pragma once
// What the attention kernels of the CPU read and write, as pointers of one type.

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>

#include "attune/kernels/attention/attention.h"
#include "attune/kernels/cpu/gemm/bfloat16_tile_product.h"
#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"
#include "attune/kernels/for_dtype.h"

namespace attune {

/// AttentionInputs: row r, head h of q begins at q + r * q_row + h * d_k, and so on.
template <class T>
struct AttentionPointers {
  const T* q;
  const T* k;
  const T* v;
  int64_t q_row, k_row, v_row;
  int64_t heads, kv_heads, d_k, d_v;
  const int32_t* query_offsets;
  const int32_t* key_offsets;
  int64_t sequences;
  bool causal;
  const uint8_t* mask;  // null, or [mask_sequences][mask_queries][mask_keys]
  int64_t mask_sequences, mask_queries, mask_keys;
  const AttentionPattern& pattern;
  std::span<const double> slopes;
  const T* relative_keys;
  const T* relative_values;
  int64_t clip;
  const T* distance_bias;  // null, or [2 reach + 1][heads]
  int64_t reach;
  DropoutMask dropout;
  double scale;
  double soft_cap;      // 0: none; above 0 there are no slopes and no distance_bias
  bool bfloat16_tiles;  // plain() attention multiplies in bfloat16, with bfloat16_tile_product()

  /// Query heads that share a key head.
  int64_t group() const { return heads / kv_heads; }
  int64_t bias_elements() const { return distance_bias ? (2 * reach + 1) * heads : 0; }
  /// Where the bias of a key at this distance from the query stands.
  int64_t bias_index(int64_t distance, int64_t head) const {
    return (std::clamp(distance, -reach, reach) + reach) * heads + head;
  }
  /// Whether scores are q k^T * scale alone and there is no pattern; causality and a mask are possible.
  bool plain() const {
    return std::holds_alternative<FullAttention>(pattern) && slopes.empty() && !relative_keys && !relative_values &&
           !distance_bias && soft_cap == 0;
  }
};

template <class T>
struct AttentionForward {
  AttentionPointers<T> in;
  T* out;
  T* log_sum_exp;
};

template <class T>
struct AttentionBackward {
  AttentionPointers<T> in;
  const T* out;
  const T* log_sum_exp;
  const T* d_out;
  const T* dots;  // like log_sum_exp: sum(d_out * out) of each row and head
  T* dq;          // rows of q_row numbers, and so on
  T* dk;
  T* dv;
  T* d_relative_keys;
  T* d_relative_values;
  T* d_distance_bias;
};

/// The gradients of tables, from some of the tasks: like the d_... tables of AttentionBackward.
template <class T>
struct TableGradients {
  T* relative_keys = nullptr;
  T* relative_values = nullptr;
  T* distance_bias = nullptr;
};

template <class T>
T* begin_of(const HeadColumns& part) {
  return part.x.data<T>() + part.column;
}

/// Valid as long as the inputs.
template <class T>
AttentionPointers<T> pointers_of(const AttentionInputs& in) {
  const bool masked = in.mask.defined();
  return {.q = begin_of<T>(in.q),
          .k = begin_of<T>(in.k),
          .v = begin_of<T>(in.v),
          .q_row = in.q.x.size(1),
          .k_row = in.k.x.size(1),
          .v_row = in.v.x.size(1),
          .heads = in.q.heads,
          .kv_heads = in.k.heads,
          .d_k = in.q.d,
          .d_v = in.v.d,
          .query_offsets = in.query_offsets.data(),
          .key_offsets = in.key_offsets.data(),
          .sequences = in.sequences(),
          .causal = in.causal,
          .mask = data_or_null<uint8_t>(in.mask),
          .mask_sequences = masked ? in.mask.size(0) : 0,
          .mask_queries = masked ? in.mask.size(1) : 0,
          .mask_keys = masked ? in.mask.size(2) : 0,
          .pattern = in.pattern,
          .slopes = in.slopes,
          .relative_keys = data_or_null<T>(in.relative_keys),
          .relative_values = data_or_null<T>(in.relative_values),
          .clip = in.clip,
          .distance_bias = data_or_null<T>(in.distance_bias),
          .reach = in.distance_bias.defined() ? in.distance_bias.size(0) / 2 : 0,
          .dropout = in.dropout,
          .scale = in.scale,
          .soft_cap = in.soft_cap,
          .bfloat16_tiles = std::is_same_v<T, float> && in.bfloat16_products &&
                            std::max(in.q.d, in.v.d) <= cpu::kMostTileWidth && cpu::has_avx512_bfloat16()};
}

}  // namespace attune
