#include "attune/nn/embeddings.h"

#include <gtest/gtest.h>

#include "attune/tensor/host_view.h"

namespace attune {
namespace {

constexpr int32_t kPadding = 1;

Embeddings with_positions(const SinusoidOptions& options) {
  auto table = std::make_unique<InputEmbedding>(Tensor::zeros({10, 8}), false);
  return {{.token = std::move(table), .position = std::make_unique<PositionalEncoding>(8, 0, options)}, 0};
}

std::vector<float> row(const Tensor& x, int64_t r) {
  return host_values<float>(x.rows(r, r + 1));
}

// fairseq's positions begin after the padding token's id, and do not count it.
TEST(Embeddings, APaddingTokenHasNoPositionAndIsNotCounted) {
  const Embeddings embeddings = with_positions({.first = kPadding + 1, .padding_token = kPadding});
  const Tensor table = sinusoidal_positions(6, 8, 10000, {.first = kPadding + 1});
  const Tensor x = embeddings(Indices(std::vector<int32_t>{5, kPadding, 6, kPadding, kPadding, 7, 5, 4}),
                              Sequences::from_offsets({0, 6, 8}));
  EXPECT_EQ(row(x, 0), row(table, 0));
  EXPECT_EQ(row(x, 1), std::vector<float>(8));
  EXPECT_EQ(row(x, 2), row(table, 1));
  EXPECT_EQ(row(x, 4), std::vector<float>(8));
  EXPECT_EQ(row(x, 5), row(table, 2));
  EXPECT_EQ(row(x, 6), row(table, 0));  // of the second sequence
  EXPECT_EQ(row(x, 7), row(table, 1));
}

// Step by step, positions are those of the cache.
TEST(Embeddings, GivenPositionsHoldForAllOtherTokens) {
  const Embeddings embeddings = with_positions({.padding_token = kPadding});
  const Tensor table = sinusoidal_positions(6, 8);
  const Tensor x = embeddings(Indices(std::vector<int32_t>{kPadding, 6}), Indices(std::vector<int32_t>{3, 4}));
  EXPECT_EQ(row(x, 0), std::vector<float>(8));
  EXPECT_EQ(row(x, 1), row(table, 4));
}

}  // namespace
}  // namespace attune
