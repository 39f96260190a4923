#include "attune/nn/attention/mask.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(Mask, PaddingAtTheEndIsKnownByItsLengths) {
  const Tensor ids = Tensor::from({3, 4}, std::vector<int32_t>{5, 6, 7, 8, 5, 0, 0, 0, 0, 0, 0, 0});
  const Mask mask = padding_mask(ids, 0);
  ASSERT_TRUE(mask.lengths());
  EXPECT_EQ(*mask.lengths(), (std::vector<int32_t>{4, 1, 0}));
  EXPECT_FALSE(mask.allowed().defined());
}

TEST(Mask, PaddingAnywhereElseIsExplicit) {
  const Mask mask = padding_mask(Tensor::from({1, 3}, std::vector<int32_t>{5, 0, 6}), 0);
  EXPECT_FALSE(mask.lengths());
  ASSERT_TRUE(mask.allowed().defined());
  EXPECT_EQ(mask.allowed().data<uint8_t>()[1], 0);
  EXPECT_EQ(mask.allowed().data<uint8_t>()[2], 1);
}

TEST(Mask, CombinesStructureAndMatrices) {
  const Mask both = Mask::of_lengths({3, 2}) & causal_mask() & Mask::of_lengths({2, 4});
  EXPECT_TRUE(both.causal());
  EXPECT_EQ(*both.lengths(), (std::vector<int32_t>{2, 2}));
  const Tensor row = Tensor::from({1, 1, 2}, std::vector<uint8_t>{1, 0}),
               column = Tensor::from({1, 2, 1}, std::vector<uint8_t>{1, 0});
  const Mask product = Mask::of_allowed(row) & Mask::of_allowed(column);
  EXPECT_EQ(
      std::vector<uint8_t>(product.allowed().values<uint8_t>().begin(), product.allowed().values<uint8_t>().end()),
      (std::vector<uint8_t>{1, 0, 0, 0}));
  EXPECT_THROW(Mask::of_lengths({1}) & Mask::of_lengths({1, 2}), ShapeError);
}

TEST(Mask, PackingKeepsRealPositions) {
  const Packing packing = packing_of(2, 3, Mask::of_lengths({2, 3}));
  EXPECT_EQ(packing.sequences.offsets(), (std::vector<int32_t>{0, 2, 5}));
  const auto unpack = packing.unpack.values();
  EXPECT_EQ(std::vector<int32_t>(unpack.begin(), unpack.end()), (std::vector<int32_t>{0, 1, -1, 2, 3, 4}));
  EXPECT_EQ(message_of<ShapeError>([] {
              packing_of(2, 3, Mask::of_lengths({2, 4}));
            }),
            "mask: length 4 of sequence 1 exceeds 3");
}

}  // namespace
}  // namespace attune
