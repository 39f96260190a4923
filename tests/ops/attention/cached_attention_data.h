#pragma once
// Caches, lists of slots and options for tests of cached_attention().

#include <vector>

#include "attune/ops/attention/cached_attention.h"
#include "tests/support/slot_table_data.h"

namespace attune {

inline constexpr int64_t kHeads = 4, kKeyWidth = 20, kValueWidth = 12, kClip = 6, kReach = 9;

// Keys and values in pages, as they are and one key head after another.
struct Cache {
  Tensor k, v;  // [n, kv_heads, d]
  PagedRows keys, values;

  Cache(int64_t n, int64_t kv_heads, DType dtype, const Device& device = {}, int64_t d_k = kKeyWidth,
        int64_t d_v = kValueWidth)
      : k(normal({n, kv_heads, d_k}, {.dtype = dtype, .seed = 2})),
        v(normal({n, kv_heads, d_v}, {.dtype = dtype, .seed = 3})),
        keys(kv_heads * d_k, dtype),
        values(kv_heads * d_v, dtype) {
    keys.append(k.reshape({n, -1}).to(device));
    values.append(v.reshape({n, -1}).to(device));
  }
};

// Row r sees the first lengths[r] slots.
inline SlotTableData prefixes(const std::vector<int32_t>& lengths) {
  SlotTableData table;
  for (const int32_t length : lengths) {
    table.begin.push_back(static_cast<int32_t>(table.slots.size()));
    for (int32_t s = 0; s < length; ++s) table.slots.push_back(s);
    table.end.push_back(static_cast<int32_t>(table.slots.size()));
  }
  return table;
}

inline const AttentionPattern kPatterns[] = {FullAttention{},       SlidingWindow{1},      SlidingWindow{5},
                                             SlidingWindow{1000},   StridedAttention{1},   StridedAttention{3},
                                             StridedAttention{400}, FixedAttention{1, 1},  FixedAttention{7, 2},
                                             FixedAttention{4, 4},  FixedAttention{900, 3}};

// Every option alone, and all of them at once.
inline std::vector<CachedAttentionOptions> every_option(int64_t kv_heads, DType dtype) {
  const Tensor a = normal({2 * kClip + 1, kKeyWidth}, {.dtype = dtype, .seed = 4}),
               b = normal({2 * kClip + 1, kValueWidth}, {.dtype = dtype, .seed = 5}),
               bias = normal({2 * kReach + 1, kHeads}, {.dtype = dtype, .seed = 6});
  const CachedAttentionOptions plain{.kv_heads = kv_heads, .scale = 0.3};
  std::vector<CachedAttentionOptions> all;
  for (const AttentionPattern& pattern : kPatterns) {
    CachedAttentionOptions options = plain;
    options.pattern = pattern;
    all.push_back(options);
    options.alibi = true;
    options.relative_keys = a;
    options.relative_values = b;
    options.distance_bias = bias;
    all.push_back(options);
  }
  all.push_back({.kv_heads = kv_heads, .scale = 0.3, .alibi = true});
  all.push_back({.kv_heads = kv_heads, .scale = 0.3, .relative_keys = a});
  all.push_back({.kv_heads = kv_heads, .scale = 0.3, .relative_values = b});
  all.push_back({.kv_heads = kv_heads, .scale = 0.3, .distance_bias = bias});
  return all;
}

}  // namespace attune
