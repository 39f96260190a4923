#include "attune/ops/cached_attention.h"

#include <gtest/gtest.h>

#include "attune/ops/attention.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(CachedAttention, EqualsAttentionOverTheSameRows) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    const int64_t heads = 4, d_k = 20, d_v = 12, keys = 700;  // more keys than a page holds
    const Tensor q = normal({3, heads, d_k}, {.seed = 1}), k = normal({keys, kv_heads, d_k}, {.seed = 2}),
                 v = normal({keys, kv_heads, d_v}, {.seed = 3});
    PagedRows k_rows(kv_heads * d_k, DType::f64), v_rows(kv_heads * d_v, DType::f64);
    for (int64_t at = 0; at < keys; at += 100) {  // in pieces that cross the pages
      EXPECT_EQ(k_rows.append(k.rows(at, at + 100).reshape({100, -1})), at);
      v_rows.append(v.rows(at, at + 100).reshape({100, -1}));
    }
    SlotTable table;
    for (int32_t s = 0; s < keys; ++s) table.slots.push_back(s);
    table.begin = {0, 10, 600};
    table.end = {700, 11, 600};  // everything, one key, none
    const Tensor out = cached_attention(q, k_rows, v_rows, kv_heads, table, 0.3);
    for (int64_t r = 0; r < 3; ++r) {
      const auto [begin, end] = std::pair{table.begin[static_cast<size_t>(r)], table.end[static_cast<size_t>(r)]};
      const Tensor expected = attention(q.rows(r, r + 1), k.rows(begin, end), v.rows(begin, end),
                                        {.query_sequences = Sequences::from_lengths({1}),
                                         .key_sequences = Sequences::from_lengths({end - begin}),
                                         .scale = 0.3});
      EXPECT_LT(relative_error(out.rows(r, r + 1), expected), 1e-12) << r;
    }
  }
}

TEST(CachedAttention, SlotsMayComeInAnyOrderAndBeShared) {
  const Tensor q = normal({2, 1, 4}, {.seed = 1}), k = normal({5, 4}, {.seed = 2});
  PagedRows rows(4, DType::f64);
  rows.append(k);
  const SlotTable table{.slots = {4, 0, 2, 2, 0, 4}, .begin = {0, 3}, .end = {3, 6}};
  Tensor same = q.clone();
  same.rows(1, 2).copy_from(same.rows(0, 1));
  const Tensor out = cached_attention(same, rows, rows, 1, table, 1);
  EXPECT_LT(relative_error(out.rows(1, 2), out.rows(0, 1)), 1e-14);
}

TEST(CachedAttention, RefusesSlotsThatAreNotThere) {
  PagedRows rows(4);
  rows.append(Tensor::zeros({2, 4}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              cached_attention(Tensor::zeros({1, 1, 4}), rows, rows, 1, {.slots = {2}, .begin = {0}, .end = {1}}, 1);
            }),
            "cached_attention: slot 2 of 2");
  EXPECT_THROW(rows.append(Tensor::zeros({2, 5})), ShapeError);
}

TEST(HeadProducts, AgreeWithPlainLoops) {
  const int64_t rows = 3, heads = 2, in = 21, out = 35;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = normal({rows, heads, in}, {.dtype = DType::f64, .seed = 1});
    const Tensor by_rows = normal({heads * in, out}, {.dtype = DType::f64, .seed = 2}),
                 by_columns = normal({heads * out, in}, {.dtype = DType::f64, .seed = 3});
    Tensor y = Tensor::zeros({rows, heads, out}, {.dtype = DType::f64}),
           z = Tensor::zeros({rows, heads, out}, {.dtype = DType::f64});
    for (int64_t i = 0; i < rows * heads; ++i)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < in; ++c) {
          y.data<double>()[i * out + o] +=
              x.data<double>()[i * in + c] * by_rows.data<double>()[(i % heads * in + c) * out + o];
          z.data<double>()[i * out + o] +=
              x.data<double>()[i * in + c] * by_columns.data<double>()[(i % heads * out + o) * in + c];
        }
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
    EXPECT_LT(relative_error(heads_times_rows(x.to(dtype), by_rows.to(dtype)).to(DType::f64), y), tolerance);
    EXPECT_LT(relative_error(heads_times_columns(x.to(dtype), by_columns.to(dtype)).to(DType::f64), z), tolerance);
  }
}

}  // namespace
}  // namespace attune
