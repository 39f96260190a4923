#include "attune/ops/attention/cached_attention.h"

#include <algorithm>
#include <span>

#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/attention/cached_attention.h"
#include "attune/ops/attention/attention.h"
#include "attune/ops/attention/attention_check.h"
#include "attune/ops/attention/relative_tables.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

// One pass without a branch, since every decoding step makes it; the invalid slot is searched for only after a failure.
void check_slots(std::span<const int32_t> list, int64_t slots) {
  bool fits = true;
  for (const int32_t slot : list) fits &= slot >= 0 && slot < slots;
  if (fits) return;
  for (const int32_t slot : list)
    if (slot < 0 || slot >= slots) fail<ShapeError>("cached_attention: slot {} of {}", slot, slots);
}

bool same_slots(const SlotTable& table, size_t a, size_t b) {
  return table.begin[a] == table.begin[b] && table.end[a] == table.end[b];
}

void check_table(const SlotTable& table, size_t rows, int64_t slots) {
  if (table.begin.size() != rows || table.end.size() != rows)
    fail<ShapeError>("cached_attention: q has {} rows but the table has {}", rows, table.begin.size());
  for (size_t r = 0; r < rows; ++r) {
    if (r > 0 && same_slots(table, r, r - 1)) continue;
    if (table.begin[r] < 0 || table.end[r] < table.begin[r] || static_cast<size_t>(table.end[r]) > table.slots.size())
      fail<ShapeError>("cached_attention: row {} reads slots [{}, {}) of {}", r, table.begin[r], table.end[r],
                       table.slots.size());
    check_slots({table.slots.data() + table.begin[r], static_cast<size_t>(table.end[r] - table.begin[r])}, slots);
  }
}

void check(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
           const CachedAttentionOptions& options) {
  const int64_t kv_heads = options.kv_heads;
  if (q.rank() != 3 || q.size(1) < 1 || kv_heads < 1 || q.size(1) % kv_heads != 0 ||
      keys.width() != kv_heads * q.size(2) || values.width() % kv_heads != 0 || keys.size() != values.size())
    fail<ShapeError>("cached_attention: q {} does not fit {} keys of {} and {} values of {} in {} heads",
                     q.shape().text(), keys.size(), keys.width(), values.size(), values.width(), kv_heads);
  if (keys.dtype() != q.dtype() || values.dtype() != q.dtype())
    fail<ShapeError>("cached_attention: q is {}, keys {}, values {}", name_of(q.dtype()), name_of(keys.dtype()),
                     name_of(values.dtype()));
  check_rows("cached_attention", q);
  const int64_t most_d_v = values.width() / kv_heads;
  if (options.d_v < 0 || options.d_v > most_d_v)
    fail<ShapeError>("cached_attention: d_v = {} but values of {} in {} heads have {}", options.d_v, values.width(),
                     kv_heads, most_d_v);
  for (const PagedRows* rows : {&keys, &values})
    if (rows->size() > 0 && rows->pages().device() != q.device())
      fail<ShapeError>("cached_attention: q is on {} but the cache on {}", q.device().text(),
                       rows->pages().device().text());
  check_device("cached_attention", q, {options.relative_keys, options.relative_values, options.distance_bias});
  check_table(table, static_cast<size_t>(q.size(0)), keys.size());
  check_pattern("cached_attention", options.pattern);
  check_relative_tables("cached_attention", options.relative_keys, options.relative_values, q.dtype(), q.size(2),
                        options.d_v > 0 ? options.d_v : most_d_v);
  check_soft_cap("cached_attention", options.soft_cap, options.alibi || options.distance_bias.defined());
  check_distance_bias("cached_attention", options.distance_bias, q.dtype(), q.size(1));
}

// A tensor of zeros for the weights of each head and slot.
Tensor make_weights(const Tensor& q, const SlotTable& table) {
  int32_t most = 0;
  for (size_t r = 0; r < table.begin.size(); ++r) most = std::max(most, table.end[r] - table.begin[r]);
  return Tensor::zeros({q.size(0), q.size(1), most}, {q.dtype(), q.device()});
}

}  // namespace

AttentionResult cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values,
                                 const SlotTable& table, const CachedAttentionOptions& options, bool with_weights) {
  const ProfileScope scope("cached_attention");
  check(q, keys, values, table, options);
  const int64_t d_v = options.d_v > 0 ? options.d_v : values.width() / options.kv_heads;
  Tensor out = Tensor::empty({q.size(0), q.size(1), d_v}, {q.dtype(), q.device()});
  const Tensor weights = with_weights ? make_weights(q, table) : Tensor{};
  const CachedAttention arguments{.q = q,
                                  .keys = keys.pages(),
                                  .values = values.pages(),
                                  .slots = table.slots,
                                  .begin = table.begin,
                                  .end = table.end,
                                  .kv_heads = options.kv_heads,
                                  .scale = options.scale,
                                  .pattern = options.pattern,
                                  .slopes = options.alibi ? alibi_slopes(q.size(1)) : std::vector<double>{},
                                  .relative_keys = options.relative_keys,
                                  .relative_values = options.relative_values,
                                  .clip = relative_clip(options.relative_keys, options.relative_values),
                                  .distance_bias = options.distance_bias,
                                  .soft_cap = options.soft_cap,
                                  .out = out,
                                  .weights = weights};
  dispatch(q.device(), [&](auto device) { cached_attention_forward(device, arguments); });
  return {out, weights};
}

Tensor cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
                        const CachedAttentionOptions& options) {
  return cached_attention(q, keys, values, table, options, false).heads;
}

}  // namespace attune
