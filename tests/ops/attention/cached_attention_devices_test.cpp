// cached_attention() on every device.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/attention/cached_attention_data.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

void expect_same_on(const Device& device, DType dtype, int64_t kv_heads) {
  const SlotTableData table = prefixes({1, 2, 7, 8, 0, 300, 300, 140});
  const auto rows = static_cast<int64_t>(table.begin.size());
  const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
  const Cache cache(300, kv_heads, dtype), there(300, kv_heads, dtype, device);
  const Tensor q = normal({rows, kHeads, kKeyWidth}, {.dtype = dtype, .seed = 1});
  for (CachedAttentionOptions options : every_option(kv_heads, dtype)) {
    const AttentionResult expected = cached_attention(q, cache.keys, cache.values, table, options, true);
    for (Tensor* t : {&options.relative_keys, &options.relative_values, &options.distance_bias})
      if (t->defined()) *t = t->to(device);
    const AttentionResult found = cached_attention(q.to(device), there.keys, there.values, table, options, true);
    EXPECT_LT(relative_error(found.heads, expected.heads), tolerance) << options.pattern.index();
    EXPECT_LT(relative_error(found.weights, expected.weights), tolerance) << options.pattern.index();
  }
  const CachedAttentionOptions latent{.kv_heads = kv_heads, .d_v = kValueWidth, .scale = 0.2};
  EXPECT_LT(relative_error(cached_attention(q.to(device), there.keys, there.keys, table, latent),
                           cached_attention(q, cache.keys, cache.keys, table, latent)),
            tolerance);
}

TEST(CachedAttentionDevices, IsTheSameOnEveryDevice) {
  for (const Device& device : devices_under_test()) {
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t kv_heads : {1, 2, 4}) expect_same_on(device, dtype, kv_heads);
  }
}

// Head widths that are read in fours and that are not, of values narrower and wider than the threads of a block cover;
// query heads alone, and more on a key head than a block takes.
TEST(CachedAttentionDevices, TakesEveryWidthOnEveryDevice) {
  struct Sizes {
    int64_t heads, kv_heads, d_k, d_v;
  };
  const SlotTableData table = prefixes({3, 0, 70, 129});
  for (const Sizes& s : {Sizes{2, 2, 64, 64}, Sizes{2, 2, 8, 4}, Sizes{3, 1, 5, 3}, Sizes{2, 1, 36, 130},
                         Sizes{11, 1, 576, 576}, Sizes{9, 1, 12, 515}, Sizes{20, 2, 16, 520}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Cache cache(129, s.kv_heads, dtype, {}, s.d_k, s.d_v);
      const Tensor q = normal({4, s.heads, s.d_k}, {.dtype = dtype, .seed = 1});
      const CachedAttentionOptions options{.kv_heads = s.kv_heads, .scale = 0.1};
      const Tensor expected = cached_attention(q, cache.keys, cache.values, table, options);
      for (const Device& device : devices_under_test()) {
        const Cache there(129, s.kv_heads, dtype, device, s.d_k, s.d_v);
        const Tensor found = cached_attention(q.to(device), there.keys, there.values, table, options);
        EXPECT_LT(relative_error(found, expected), device_tolerance(dtype)) << s.heads << " heads of " << s.d_v;
      }
    }
  }
}

// A bias of -inf hides all keys beyond a distance, whole parts of a list too.
TEST(CachedAttentionDevices, PartsThatABiasHidesCountForNothing) {
  const SlotTableData table = prefixes({300, 1000});
  for (const double least : {0.0, -110.0}) {  // of the scores that are seen
    const Tensor bias = Tensor::full({2 * kReach + 1, 2}, least);
    for (int64_t h = 0; h < 2; ++h) bias.data<float>()[h] = -INFINITY;
    const CachedAttentionOptions options{.scale = 0.3, .distance_bias = bias};
    const Tensor q = normal({2, 2, 4}, {.dtype = DType::f32, .seed = 1});
    const auto on = [&](const Device& device) {
      const Cache cache(1000, 1, DType::f32, device, 4, 4);
      CachedAttentionOptions there = options;
      there.distance_bias = bias.to(device);
      return cached_attention(q.to(device), cache.keys, cache.values, table, there).to(Cpu{});
    };
    std::vector<Device> devices = devices_under_test();
    devices.push_back(Cpu{});
    for (const Device& device : devices)
      EXPECT_LT(relative_error(on(device), on(Plain{})), 1e-5) << device.text() << " " << least;
  }
}

// As attention() does. The lists have one part and several.
TEST(CachedAttentionDevices, AQueryWhoseScoresAreAllMinusInfinityGivesZeros) {
  const Tensor bias = Tensor::full({2 * kReach + 1, 2}, -INFINITY);
  for (const Device& device : all_devices()) {
    const Cache cache(300, 1, DType::f32, device, 4, 4);
    const Tensor q = normal({2, 2, 4}, {.dtype = DType::f32, .seed = 1}).to(device);
    const auto [heads, weights] = cached_attention(q, cache.keys, cache.values, prefixes({100, 300}),
                                                   {.scale = 0.3, .distance_bias = bias.to(device)}, true);
    for (const Tensor& result : {heads.to(Cpu{}), weights.to(Cpu{})})
      for (const float value : result.values<float>()) ASSERT_EQ(value, 0) << device.text();
  }
}

// Lengths around those at which lists are divided otherwise: the same as on the CPU, and a row alone gives its bits.
TEST(CachedAttentionDevices, LongListsAreTheSameOnEveryDeviceAlone) {
  const std::vector<int32_t> lengths{63, 64, 65, 256, 257, 1024, 1025, 4096, 4097};
  const auto rows = static_cast<int64_t>(lengths.size());
  const SlotTableData table = prefixes(lengths);
  const Cache cache(4097, 1, DType::f32, {}, 4, 4);
  const Tensor q = normal({rows, 2, 4}, {.dtype = DType::f32, .seed = 1});
  const CachedAttentionOptions options{.scale = 0.3};
  const AttentionResult expected = cached_attention(q, cache.keys, cache.values, table, options, true);
  for (const Device& device : devices_under_test()) {
    const Cache there(4097, 1, DType::f32, device, 4, 4);
    const AttentionResult found = cached_attention(q.to(device), there.keys, there.values, table, options, true);
    EXPECT_LT(relative_error(found.heads, expected.heads), 1e-5);
    EXPECT_LT(relative_error(found.weights, expected.weights), 1e-5);
    for (int64_t r = 0; r < rows; ++r) {
      const Tensor alone = cached_attention(q.rows(r, r + 1).to(device), there.keys, there.values,
                                            prefixes({lengths[static_cast<size_t>(r)]}), options);
      EXPECT_TRUE(same_bits(alone.to(Cpu{}), found.heads.rows(r, r + 1).to(Cpu{}))) << lengths[static_cast<size_t>(r)];
    }
  }
}

TEST(CachedAttentionDevices, RefusesACacheOfAnotherDevice) {
  const Cache plain(3, 1, DType::f32, Plain{});
  EXPECT_EQ(message_of<ShapeError>([&] {
              cached_attention(Tensor::zeros({1, 2, kKeyWidth}), plain.keys, plain.values, prefixes({3}), {});
            }),
            "cached_attention: q is on cpu but the cache on plain");
}

}  // namespace
}  // namespace attune
