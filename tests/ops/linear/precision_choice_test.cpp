#include "attune/ops/linear/precision_choice.h"

#include <gtest/gtest.h>

#include "attune/kernels/gemm/matmul.h"

namespace attune {
namespace {

TEST(PrecisionChoice, AutomaticIsWhatTheProcessorMultiplies) {
  EXPECT_EQ(resolved(PrecisionChoice::automatic),
            has_bfloat16_products() ? ProductPrecision::bfloat16 : ProductPrecision::float32);
  EXPECT_EQ(resolved(PrecisionChoice::automatic, Cuda{}), ProductPrecision::bfloat16);
}

TEST(PrecisionChoice, OthersAreTakenAsTheyAre) {
  for (const Device& device : {Device(Cpu{}), Device(Cuda{})}) {
    EXPECT_EQ(resolved(PrecisionChoice::float32, device), ProductPrecision::float32);
    EXPECT_EQ(resolved(PrecisionChoice::bfloat16, device), ProductPrecision::bfloat16);
  }
  for (const auto precision : {ProductPrecision::float32, ProductPrecision::bfloat16})
    EXPECT_EQ(resolved(choice_of(precision)), precision);
}

}  // namespace
}  // namespace attune
