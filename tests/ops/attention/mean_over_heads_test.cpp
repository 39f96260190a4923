#include "attune/ops/attention/mean_over_heads.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(MeanOverHeads, AddsTheHeadsUpOnEveryDevice) {
  const Tensor weights = Tensor::from<double>({2, 2, 3}, std::vector<double>{1, 2, 3, 5, 6, 7, 0, 0, 2, 1, 0, 4});
  std::vector<Device> devices = devices_under_test();
  devices.push_back(Cpu{});
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Device& device : devices) {
      const Tensor mean = mean_over_heads(weights.to(dtype).to(device)).to(Cpu{}).to(DType::f64);
      EXPECT_TRUE(same_bits(mean, Tensor::from<double>({2, 3}, std::vector<double>{3, 4, 5, 0.5, 0, 3})));
    }
  }
}

TEST(MeanOverHeads, NamesTheShape) {
  EXPECT_EQ(message_of<ShapeError>([] {
              mean_over_heads(Tensor::zeros({2, 3}));
            }),
            "mean_over_heads: needs [rows, heads, keys] with at least one head, found [2, 3]");
}

}  // namespace
}  // namespace attune
