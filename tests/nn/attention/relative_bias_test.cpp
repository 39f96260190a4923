#include "attune/nn/attention/relative_bias.h"

#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

// What the published code of T5 (mesh_tensorflow) and transformers' _relative_position_bucket give.
TEST(RelativeBias, BucketsAreThoseOfThePublishedCode) {
  const RelativeBiasConfig encoder{}, decoder{.bidirectional = false};
  const auto of = [](const RelativeBiasConfig& config, std::vector<int64_t> distances) {
    std::vector<int64_t> buckets;
    for (const int64_t distance : distances) buckets.push_back(relative_bucket(config, distance));
    return buckets;
  };
  EXPECT_EQ(of(encoder, {0, -1, -7, -8, -11, -12, -15, -16, -22, -23, -31, -32, -45, -46, -63, -64, -90, -91, -500}),
            (std::vector<int64_t>{0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15}));
  EXPECT_EQ(of(encoder, {1, 7, 8, 127, 128, 500}), (std::vector<int64_t>{17, 23, 24, 31, 31, 31}));
  EXPECT_EQ(of(decoder, {3, 1, 0, -1, -15, -16, -18, -19, -20, -21, -23, -24, -112, -113, -128, -1000}),
            (std::vector<int64_t>{0, 0, 0, 1, 15, 16, 16, 17, 17, 18, 18, 19, 30, 31, 31, 31}));
}

TEST(RelativeBias, GivesANumberForEachDistanceAndHead) {
  RelativeBias bias({.heads = 2, .buckets = 8, .max_distance = 6});
  const std::vector<NamedParameter> parameters = named_parameters(bias);
  ASSERT_EQ(parameters.size(), 1);
  EXPECT_EQ(parameters[0].name, "weight");
  ASSERT_EQ(parameters[0].tensor->shape(), (Shape{8, 2}));
  for (size_t i = 0; i < 16; ++i) parameters[0].tensor->values<float>()[i] = static_cast<float>(i);
  const Tensor table = bias.by_distance();
  ASSERT_EQ(table.shape(), (Shape{13, 2}));
  for (int64_t distance = -6; distance <= 6; ++distance) {
    const int64_t bucket = relative_bucket({.buckets = 8, .max_distance = 6}, distance);
    for (int64_t head = 0; head < 2; ++head)
      EXPECT_EQ(table.values<float>()[static_cast<size_t>((distance + 6) * 2 + head)],
                static_cast<float>(bucket * 2 + head));
  }
}

TEST(RelativeBias, RefusesWhatHasNoBuckets) {
  EXPECT_EQ(message_of<ConfigError>([] { RelativeBias({.buckets = 2}); }),
            "buckets = 2: needs a number from 4 to 4096");
  EXPECT_EQ(message_of<ConfigError>([] { RelativeBias({.buckets = 7}); }), "buckets = 7: needs an even number");
  EXPECT_EQ(message_of<ConfigError>([] { RelativeBias({.buckets = 32, .max_distance = 16}); }),
            "max_distance = 16: needs a number from 17 to 65536");
}

}  // namespace
}  // namespace attune
