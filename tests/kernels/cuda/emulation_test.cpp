// The emulation finds what a kernel must not do, and gives its threads what a GPU gives them.

#include "attune/kernels/cuda/runtime/emulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/host_view.h"
#include "attune/tensor/tensor.h"
#include "tests/support/errors.h"

namespace attune::cuda {
namespace {

using testing::HasSubstr;

constexpr Cuda kDevice{0};

template <class Kernel>
std::string failure_of(const LaunchShape& shape, const Kernel& kernel) {
  return message_of<DeviceError>([&] { launch(kDevice, "example", shape, kernel); });
}

// y[block, i] = the sum over the threads of the block of their numbers, in shared memory and by reduce().
struct SumOfThreads {
  static constexpr int kThreads = 128;
  int32_t* y;
  void operator()(Thread& thread) const {
    const SharedArray<int32_t> numbers = thread.shared<int32_t>(thread.count());
    numbers[thread.index()] = thread.index();
    thread.barrier();
    int32_t sum = 0;
    for (int i = 0; i < thread.count(); ++i) sum += numbers[i];
    const bool same = sum == thread.reduce(thread.index(), Sum{});
    y[thread.block() * thread.count() + thread.index()] = same ? sum : -1;
  }
};

TEST(Emulation, ThreadsOfABlockShareMemoryAndWait) {
  const Tensor y = Tensor::empty({3, 96}, {DType::i32, kDevice});
  launch(kDevice, "example", {.blocks = 3, .threads = 96, .shared_bytes = shared_bytes_of<int32_t>(96)},
         SumOfThreads{y.data<int32_t>()});
  EXPECT_THAT(host_values<int32_t>(y), testing::Each(96 * 95 / 2));
}

TEST(Emulation, ABlockHasTheSharedMemoryOfTheLeastGpu) {
  const Tensor y = Tensor::empty({1, 32}, {DType::i32, kDevice});
  const SumOfThreads kernel{y.data<int32_t>()};
  const size_t most = (163u << 10) - kReduceBytes;
  launch(kDevice, "example", {.blocks = 1, .threads = 32, .shared_bytes = most}, kernel);
  EXPECT_EQ(failure_of({.blocks = 1, .threads = 32, .shared_bytes = most + 1}, kernel),
            "device cuda:0: a block of kernel example needs 166913 bytes of shared memory, the device has 166912");
}

TEST(Emulation, WhatAGpuDoesNotStartIsRefused) {
  const Tensor y = Tensor::empty({1, 160}, {DType::i32, kDevice});
  const SumOfThreads kernel{y.data<int32_t>()};
  EXPECT_EQ(failure_of({.blocks = 1, .threads = 160}, kernel),
            "device cuda:0: kernel example was launched with 160 threads in a block, it is compiled for at most 128");
  EXPECT_EQ(failure_of({.blocks = int64_t{1} << 31, .threads = 32}, kernel),
            "device cuda:0: kernel example was launched with 2147483648 blocks, a GPU takes at most 2147483647");
}

struct Shuffles {
  static constexpr int kThreads = 64;
  int32_t* y;
  void operator()(Thread& thread) const {
    const int32_t from_lane_5 = thread.shuffle(thread.index(), 5);
    const int32_t neighbour = thread.shuffle_xor(thread.index(), 1);
    y[thread.index()] = from_lane_5 * 1000 + neighbour;
  }
};

TEST(Emulation, ThreadsOfAWarpExchangeValues) {
  const Tensor y = Tensor::empty({64}, {DType::i32, kDevice});
  launch(kDevice, "example", {.blocks = 1, .threads = 64}, Shuffles{y.data<int32_t>()});
  const auto values = host_values<int32_t>(y);
  EXPECT_EQ(values[2], 5003);
  EXPECT_EQ(values[63], 37062);
}

struct HalfWaits {
  static constexpr int kThreads = 64;
  void operator()(Thread& thread) const {
    if (thread.index() < 10) thread.barrier();
  }
};

TEST(Emulation, ABarrierThatNotAllReachIsAnError) {
  EXPECT_THAT(failure_of({.blocks = 2, .threads = 64}, HalfWaits{}),
              HasSubstr("kernel example, block 0: 10 of 64 threads wait at a barrier that others do not reach"));
}

struct DifferentBarriers {
  static constexpr int kThreads = 32;
  void operator()(Thread& thread) const {
    if (thread.index() == 0) {
      thread.barrier();
    } else {
      thread.barrier();
    }
  }
};

TEST(Emulation, TwoBarriersAreNotOne) {
  EXPECT_THAT(failure_of({.blocks = 1, .threads = 32}, DifferentBarriers{}), HasSubstr("32 of 32 threads wait"));
}

struct Overrun {
  static constexpr int kThreads = 32;
  int64_t count;
  void operator()(Thread& thread) const {
    const SharedArray<float> all = thread.shared<float>(count);
    all[thread.index() + 1] = 0;
  }
};

TEST(Emulation, SharedMemoryHasBounds) {
  EXPECT_THAT(failure_of({.blocks = 1, .threads = 32, .shared_bytes = 128}, Overrun{32}),
              HasSubstr("32 lies outside of an array with 32 elements"));
  EXPECT_THAT(failure_of({.blocks = 1, .threads = 32, .shared_bytes = 64}, Overrun{32}),
              HasSubstr("takes 128 bytes of shared memory, was launched with 64"));
}

TEST(Emulation, WorksAfterAnError) {
  EXPECT_FALSE(failure_of({.blocks = 1, .threads = 64}, HalfWaits{}).empty());
  const Tensor y = Tensor::empty({64}, {DType::i32, kDevice});
  launch(kDevice, "example", {.blocks = 1, .threads = 64, .shared_bytes = 256}, SumOfThreads{y.data<int32_t>()});
  EXPECT_THAT(host_values<int32_t>(y), testing::Each(64 * 63 / 2));
}

// Thread i reads what thread i - 1 has or has not written yet.
struct Race {
  static constexpr int kThreads = 32;
  int32_t* x;
  void operator()(Thread& thread) const { x[thread.index() + 1] = x[thread.index()] + 1; }
};

TEST(Emulation, ARaceIsFoundByTheOrderOfThreads) {
  const Tensor x = Tensor::zeros({33}, {DType::i32, kDevice});
  const RaceCheck check;
  EXPECT_THAT(failure_of({.blocks = 1, .threads = 32}, Race{x.data<int32_t>()}),
              HasSubstr("kernel example: the results depend on the order of its threads"));
  launch(kDevice, "example", {.blocks = 2, .threads = 32}, Shuffles{x.data<int32_t>()});  // has none
}

TEST(Emulation, TheHostCannotReadDeviceMemory) {
  const Tensor x = Tensor::zeros({4}, {.device = kDevice});
  EXPECT_DEATH(EXPECT_EQ(*x.data<float>(), 0), "");
}

}  // namespace
}  // namespace attune::cuda
