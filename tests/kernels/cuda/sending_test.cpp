// Copies that go on beside the work of a device. With LateCopies, a copy whose source is used again too early brings
// wrong values.

#include "attune/kernels/cuda/runtime/sending.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "attune/kernels/cuda/runtime/emulation.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/host_view.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {
namespace {

constexpr Cuda kGpu{0};

Tensor sent(const std::vector<int32_t>& values) {
  const std::span<const int32_t> span = values;
  return Tensor::send_bytes({std::ssize(span)}, DType::i32, std::as_bytes(span), kGpu);
}

// Sends a number from pinned memory, then writes another one there; what has come?
int32_t value_after_a_fault(bool& done_at_once) {
  auto* const pinned = static_cast<int32_t*>(allocate_pinned(kGpu, sizeof(int32_t)));
  void* const event = make_event(kGpu);
  const Tensor x = Tensor::empty({1}, {DType::i32, kGpu});
  *pinned = 1;
  send(kGpu, pinned, x.raw(), sizeof(int32_t), event);
  done_at_once = is_done(kGpu, event);
  *pinned = 2;
  const int32_t value = host_values<int32_t>(x)[0];
  EXPECT_TRUE(is_done(kGpu, event));
  release_event(event);
  release_pinned(pinned);
  return value;
}

TEST(Sending, LateCopiesShowAFault) {
  bool done = false;
  {
    const LateCopies late;
    EXPECT_EQ(value_after_a_fault(done), 2);
    EXPECT_FALSE(done);
  }
  if (std::getenv("ATTUNE_CUDA_COPIES") != nullptr) return;
  EXPECT_EQ(value_after_a_fault(done), 1);
  EXPECT_TRUE(done);
}

// More copies on their way than there are blocks, of several sizes; the host's memory is used again at once.
TEST(Sending, BringsTheValuesThatThereWereAtTheCall) {
  const LateCopies late;
  std::vector<Tensor> tensors;
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 50; ++i) {
    values.resize(static_cast<size_t>(i % 7 == 0 ? 40'000 : 10 + i));
    std::iota(values.begin(), values.end(), 1000 * i);
    tensors.push_back(sent(values));
    std::ranges::fill(values, -1);
  }
  for (int32_t i = 0; i < 50; ++i) {
    const std::vector<int32_t> found = host_values<int32_t>(tensors[static_cast<size_t>(i)]);
    ASSERT_EQ(found.size(), i % 7 == 0 ? 40'000u : 10u + static_cast<size_t>(i));
    for (size_t k = 0; k < found.size(); ++k) ASSERT_EQ(found[k], 1000 * i + static_cast<int32_t>(k)) << "copy " << i;
  }
  EXPECT_LE(pinned_blocks(kGpu), 16u);
}

TEST(Sending, BlocksAreUsedAgain) {
  sent({1, 2, 3});
  synchronize(kGpu);
  const size_t before = pinned_blocks(kGpu);
  for (int i = 0; i < 100; ++i) {
    sent({1, 2, 3});
    synchronize(kGpu);
  }
  EXPECT_EQ(pinned_blocks(kGpu), before);
}

// At the limit of blocks, those that are too small give way.
TEST(Sending, LargeBlocksTakeThePlaceOfSmallOnes) {
  const LateCopies late;
  std::vector<Tensor> tensors;
  for (int32_t i = 0; i < 40; ++i) tensors.push_back(sent({i}));
  EXPECT_EQ(pinned_blocks(kGpu), 16u);
  std::vector<int32_t> large(100'000);
  for (int32_t i = 0; i < 40; ++i) {
    std::ranges::fill(large, 1000 + i);
    tensors.push_back(sent(large));
  }
  EXPECT_EQ(pinned_blocks(kGpu), 16u);
  for (int32_t i = 0; i < 80; ++i) {
    const std::vector<int32_t> found = host_values<int32_t>(tensors[static_cast<size_t>(i)]);
    EXPECT_EQ(found.front(), i < 40 ? i : 960 + i);
    EXPECT_EQ(found.back(), found.front());
  }
}

TEST(Sending, IndicesAreSentOnce) {
  const LateCopies late;
  const Indices indices = {5, 6, 7, 8};
  indices.slice(1, 3).send(kGpu);
  const Tensor all = indices.on(kGpu);
  indices.send(kGpu);
  EXPECT_EQ(indices.on(kGpu).address(), all.address());
  EXPECT_EQ(host_values<int32_t>(all), (std::vector<int32_t>{5, 6, 7, 8}));
  Indices().send(kGpu);
}

}  // namespace
}  // namespace attune::cuda
