#include "attune/cache/paged_rows.h"

#include <gtest/gtest.h>

#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

TEST(PagedRows, KeepsRowsInAnyOrderOfSlotsOnEveryDevice) {
  std::vector<Device> devices = devices_under_test();
  devices.push_back(Cpu{});
  for (const Device& device : devices) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      PagedRows rows(6, dtype);
      EXPECT_EQ(rows.append(normal({2, 6}, {.dtype = dtype, .seed = 1}).to(device)), 0);
      const Tensor x = normal({4, 6}, {.dtype = dtype, .seed = 2});
      rows.write(x.to(device), std::vector<int32_t>{700, 1, 255, 256});  // a new block, an old slot, an edge of blocks
      EXPECT_EQ(rows.size(), 701);
      EXPECT_EQ(rows.append(x.rows(0, 1).to(device)), 701);
      const Tensor found = rows.gather(std::vector<int32_t>{700, 1, 255, 256}, 0, 6);
      EXPECT_EQ(found.device(), device);
      EXPECT_TRUE(same_bits(found.to(Cpu{}), x));
      const Tensor columns = rows.gather(std::vector<int32_t>{701, 256}, 2, 5).to(Cpu{});
      for (int64_t c = 0; c < 3; ++c) {
        EXPECT_EQ(columns.rows(0, 1).reshape({3}).rows(c, c + 1).item(), x.reshape({24}).rows(2 + c, 3 + c).item());
        EXPECT_EQ(columns.rows(1, 2).reshape({3}).rows(c, c + 1).item(), x.reshape({24}).rows(20 + c, 21 + c).item());
      }
    }
  }
}

TEST(PagedRows, NamesWhatDoesNotFit) {
  PagedRows rows(4);
  rows.append(Tensor::zeros({2, 4}));
  const auto write = [&](const Tensor& x, const std::vector<int32_t>& slots) {
    return message_of<ShapeError>([&] { rows.write(x, slots); });
  };
  EXPECT_EQ(write(Tensor::zeros({1, 5}), {0}), "cache: takes rows of 4 float32, found float32 [1, 5]");
  EXPECT_EQ(write(Tensor::zeros({1, 4}), {0, 1}), "cache: 1 rows for 2 slots");
  EXPECT_EQ(write(Tensor::zeros({1, 4}), {-1}), "cache: slot -1 is negative");
  EXPECT_EQ(write(Tensor::zeros({1, 4}, {.device = Plain{}}), {0}), "cache: is on cpu, found rows on plain");
  EXPECT_EQ(write(Tensor::zeros({1, 4}, {.device = Plain{}}), {300}), "cache: is on cpu, found rows on plain");
  EXPECT_EQ(message_of<ShapeError>([&] { rows.gather(std::vector<int32_t>{2}, 0, 4); }), "cache: slot 2, there are 2");
  EXPECT_EQ(message_of<ShapeError>([&] { rows.gather(std::vector<int32_t>{0}, 1, 5); }),
            "cache: columns [1, 5) do not lie in rows of 4 numbers");
  rows.write(Tensor::full({1, 4}, 2.0), std::vector<int32_t>{300});  // a block of the right device
}

}  // namespace
}  // namespace attune
