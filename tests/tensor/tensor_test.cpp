#include "attune/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(Shape, CountsAndPrints) {
  const Shape shape{37, 512};
  EXPECT_EQ(shape.text(), "[37, 512]");
  EXPECT_EQ(shape.numel(), 37 * 512);
  EXPECT_EQ(shape[-1], 512);
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{3, 0, 2}).numel(), 0);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW(Shape({-1, 3}), ShapeError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1}), ShapeError);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);  // would overflow
}

TEST(Tensor, SharesAndCopies) {
  const Tensor a = Tensor::from({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5});
  const Tensor b = a.reshape({3, -1});
  b.data<float>()[5] = 50;
  EXPECT_EQ(a.data<float>()[5], 50);
  const Tensor second = a.rows(1, 2);
  EXPECT_EQ(second.shape(), (Shape{1, 3}));
  EXPECT_EQ(second.data<float>()[2], 50);
  const Tensor copy = a.clone();
  copy.fill(0);
  EXPECT_EQ(a.data<float>()[1], 1);
  EXPECT_EQ(a.to(DType::i64).data<int64_t>()[5], 50);
}

TEST(Tensor, ErrorsNameWhatDoesNotFit) {
  const Tensor a = Tensor::zeros({2, 3});
  EXPECT_EQ(message_of<ShapeError>([&] { a.reshape({4, 2}); }), "reshape: [2, 3] has 6 elements, [4, 2] has 8");
  EXPECT_EQ(message_of<ShapeError>([&] { a.data<double>(); }), "tensor: is float32, read as float64");
  EXPECT_THROW(a.rows(1, 3), ShapeError);
  EXPECT_THROW(a.item(), ShapeError);
  EXPECT_THROW(Tensor().data<float>(), ShapeError);
  EXPECT_THROW(Tensor::from({3}, std::vector<float>{1, 2}), ShapeError);
}

TEST(Tensor, FindsWhatIsNotFinite) {
  const Tensor a = Tensor::zeros({10});
  EXPECT_EQ(first_not_finite(a), -1);
  a.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first_not_finite(a), 7);
  a.data<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_not_finite(a), 3);
}

TEST(Allocator, TakesASmallBlockUpToHalfAsLargeAgain) {
  release_cached_memory();
  Tensor::empty({140, 256});
  const AllocatorStatistics before = allocator_statistics();
  {
    const Tensor smaller = Tensor::empty({110, 256});
    EXPECT_EQ(allocator_statistics().system_allocations, before.system_allocations);
    EXPECT_GE(allocator_statistics().bytes_in_use - before.bytes_in_use, 140 * 256 * 4) << "the block is counted whole";
  }
  EXPECT_EQ(allocator_statistics().bytes_in_use, before.bytes_in_use);
  const Tensor much_smaller = Tensor::empty({50, 256}), larger = Tensor::empty({300, 256});
  EXPECT_EQ(allocator_statistics().system_allocations, before.system_allocations + 2);
}

TEST(Allocator, HandsFreedMemoryOutAgain) {
  Tensor::empty({1000, 1000});
  const AllocatorStatistics before = allocator_statistics();
  for (int i = 0; i < 10; ++i) Tensor::empty({1000, 1000 - i});  // nearly the same size
  EXPECT_EQ(allocator_statistics().system_allocations, before.system_allocations);
  EXPECT_EQ(allocator_statistics().bytes_in_use, before.bytes_in_use);
  release_cached_memory();
  EXPECT_LT(allocator_statistics().bytes_reserved, before.bytes_reserved);
}

TEST(Allocator, IsAlignedAndSafeAcrossThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 1; i < 300; ++i) {
        const Tensor x = Tensor::full({i, t + 1}, t);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(x.raw()) % 64, 0u);
        for (const float v : x.values<float>()) ASSERT_EQ(v, static_cast<float>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tensor, RowsThatFollowOneAnotherAreJoined) {
  const Tensor x = Tensor::from<float>({6, 2}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor joined = Tensor::joined(std::vector{x.rows(1, 2), x.rows(2, 2), x.rows(2, 5)});
  ASSERT_TRUE(joined.defined());
  EXPECT_EQ(joined.shape(), (Shape{4, 2}));
  EXPECT_EQ(joined.raw(), x.rows(1, 2).raw());
  EXPECT_FALSE(Tensor::joined(std::vector{x.rows(0, 1), x.rows(2, 3)}).defined());
  EXPECT_FALSE(Tensor::joined(std::vector{x.rows(2, 3), x.rows(1, 2)}).defined());
  EXPECT_FALSE(Tensor::joined(std::vector{x.rows(0, 1), x.rows(1, 2).clone()}).defined());
  EXPECT_FALSE(Tensor::joined(std::vector{x.rows(0, 1), x.rows(1, 3).reshape({1, 4})}).defined());
  EXPECT_FALSE(Tensor::joined(std::vector<Tensor>{}).defined());
}

TEST(Tensor, Bfloat16IsConvertedBothWays) {
  const Tensor x = Tensor::from<float>({3}, std::vector<float>{1.5f, -0.1f, 3e38f});
  const Tensor y = x.to(DType::bf16);
  EXPECT_EQ(y.bytes(), 6u);
  EXPECT_EQ(name_of(y.dtype()), "bfloat16");
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(y.to(DType::f64).values<double>()[i], static_cast<double>(float(bfloat16(x.values<float>()[i]))));
}

}  // namespace
}  // namespace attune
