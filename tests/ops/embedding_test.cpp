#include "attune/ops/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

const DropoutMask kMask{.probability = 0.2, .seed = 1, .step = 2, .op = 3};

Indices ids_of(const std::vector<int32_t>& values) {
  return values;
}

TEST(Embedding, PicksScaledRowsOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const int64_t d : {1, 7, 16, 35}) {
      const Tensor table = normal({11, d}, {.dtype = DType::f32, .seed = 1});
      const Indices ids = uniform_ids(20, 11);
      const Tensor y = embedding(ids, table, 0.5);
      for (int64_t i = 0; i < 20 * d; ++i)
        EXPECT_EQ(y.data<float>()[i], 0.5f * table.data<float>()[ids[i / d] * d + i % d]) << target;
    }
  });
}

TEST(Embedding, WidensATableInBfloat16) {
  const Indices ids = uniform_ids(20, 11);
  for (const int64_t d : {1, 7, 35}) {
    const Tensor table = to_bfloat16(normal({11, d}, {.dtype = DType::f32, .seed = 1}));
    const Tensor expected = embedding(ids, to_float32(table), 0.7);
    for_each_target(
        [&](const char* target) { EXPECT_TRUE(same_bits(embedding(ids, table, 0.7), expected)) << target; });
    for (const Device& device : devices_under_test())
      EXPECT_TRUE(same_bits(embedding(ids, table.to(device), 0.7).to(Cpu{}), expected)) << device.text();
  }
}

TEST(Embedding, GradientMatchesFiniteDifferences) {
  const Indices ids = ids_of({3, 0, 3, 3, 5, 0});  // repeated, and some rows never
  EXPECT_LT(gradient_error([&](auto& table) { return embedding(ids, table, 2.5); }, normal({7, 5})), 1e-8);
}

TEST(Embedding, GradientIsTheSameWhateverTheThreadsAndEqualsAPlainLoop) {
  const Indices ids = uniform_ids(5000, 300);
  const Tensor dy = normal({5000, 70}, {.dtype = DType::f32, .seed = 2});
  for_each_target([&](const char* target) {
    const auto [one, two] = with_one_and_two_threads([&] {
      Tensor table = Tensor::zeros({300, 70});
      require_gradient(table);
      backward(embedding(ids, table, 3), dy);
      return gradient(table);
    });
    EXPECT_TRUE(same_bits(one, two)) << target;
    const Tensor expected = Tensor::zeros({300, 70}, {.dtype = DType::f64});
    for (int64_t i = 0; i < dy.numel(); ++i)
      expected.data<double>()[ids[i / 70] * 70 + i % 70] += 3 * dy.data<float>()[i];
    EXPECT_LT(relative_error(one, expected), 1e-6) << target;
  });
}

TEST(Embedding, NamesAnIdOutsideTheVocabulary) {
  const Tensor table = normal({29, 4});
  EXPECT_THAT(
      [&] {
        embedding(ids_of({1, 28, 0, 29}), table);
      },
      testing::ThrowsMessage<DataError>("token id 29 at position 3 is outside the vocabulary of 29"));
  EXPECT_THAT([&] { embedding(ids_of({-1}), table); },
              testing::ThrowsMessage<DataError>("token id -1 at position 0 is outside the vocabulary of 29"));
  EXPECT_THROW(embedding(ids_of({1}), normal({29})), ShapeError);
}

TEST(AddRows, IsDropoutOfTheSumOnEveryTarget) {
  const Tensor table = normal({9, 70}, {.dtype = DType::f32, .seed = 1});
  const Tensor x = normal({12, 70}, {.dtype = DType::f32, .seed = 2});
  const Indices rows = uniform_ids(12, 9);
  Tensor sum = x.clone();
  for (int64_t i = 0; i < x.numel(); ++i) sum.data<float>()[i] += table.data<float>()[rows[i / 70] * 70 + i % 70];
  for_each_target([&](const char* target) {
    EXPECT_TRUE(same_bits(add_rows(x, table, rows), sum)) << target;
    EXPECT_TRUE(same_bits(add_rows(x, table, rows, kMask), dropout(sum, kMask))) << target;
  });
}

TEST(AddRows, GradientMatchesFiniteDifferences) {
  const Tensor table = normal({9, 70}, {.seed = 1});
  const Indices rows = ids_of({8, 0, 0});
  EXPECT_LT(gradient_error([&](auto& x) { return add_rows(x, table, rows, kMask); }, normal({3, 70})), 1e-8);
}

TEST(AddRows, NamesWhatDoesNotFit) {
  const Tensor x = normal({2, 4});
  EXPECT_THAT(
      [&] {
        add_rows(x, normal({5, 4}), ids_of({4, 5}));
      },
      testing::ThrowsMessage<DataError>("add_rows: row 5 at position 1 is outside the table of 5"));
  EXPECT_THAT(
      [&] {
        add_rows(x, normal({5, 4}), ids_of({1}));
      },
      testing::ThrowsMessage<ShapeError>(testing::HasSubstr("[2, 4]")));
  EXPECT_THROW(add_rows(x, normal({5, 3}), ids_of({1, 1})), ShapeError);
}

}  // namespace
}  // namespace attune
