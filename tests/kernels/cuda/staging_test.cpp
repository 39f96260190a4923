// Copies from a device that go on beside its work, and back to it. With LateCopies, what is used too early is wrong.

#include "attune/tensor/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "attune/kernels/cuda/runtime/emulation.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"

namespace attune::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;

Tensor on_gpu(const std::vector<float>& values) {
  return Tensor::from({std::ssize(values)}, values, Cuda{0});
}

TEST(CudaStaging, NothingIsThereBeforeItIsWaitedFor) {
  const LateCopies late;
  const Tensor x = on_gpu({1, 2}), y = on_gpu({3, 4});
  const auto first = make_staging(x), second = make_staging(y);
  first->fetch(x, first->host());
  second->fetch(y, second->host());
  on_gpu({5, 6});  // work of the device, which the copies do not need
  EXPECT_THAT(host_values<float>(first->host()), Each(testing::IsNan()));
  second->wait();
  EXPECT_THAT(host_values<float>(second->host()), ElementsAre(3, 4));
  EXPECT_THAT(host_values<float>(first->host()), Each(testing::IsNan()));
  std::jthread([&] { first->wait(); }).join();
  EXPECT_THAT(host_values<float>(first->host()), ElementsAre(1, 2));
}

// Fetches a tensor that is changed before the copy is waited for; what has come?
float value_of_a_source_that_changes() {
  const Tensor x = on_gpu({1});
  const auto staging = make_staging(x);
  staging->fetch(x, staging->host());
  x.fill(2);
  staging->wait();
  return host_values<float>(staging->host())[0];
}

// Sends from the host and changes the memory there before the next fetch; what has come?
float value_of_memory_that_changes() {
  const Tensor x = on_gpu({1});
  const auto staging = make_staging(x);
  staging->fetch(x, staging->host());
  staging->wait();
  staging->host().fill(2);
  staging->send(staging->host(), x);
  staging->host().fill(3);
  return host_values<float>(x)[0];
}

TEST(CudaStaging, LateCopiesShowFaults) {
  {
    const LateCopies late;
    EXPECT_EQ(value_of_a_source_that_changes(), 2);
    EXPECT_EQ(value_of_memory_that_changes(), 3);
  }
  if (std::getenv("ATTUNE_CUDA_COPIES") != nullptr) return;
  EXPECT_EQ(value_of_a_source_that_changes(), 1);
  EXPECT_EQ(value_of_memory_that_changes(), 2);
}

TEST(CudaStaging, WaitsForItsCopiesBeforeItGoes) {
  const LateCopies late;
  const Tensor x = on_gpu({1, 2});
  {
    const auto staging = make_staging(x);
    staging->fetch(x, staging->host());
    staging->wait();
    staging->host().fill(8);
    staging->send(staging->host(), x);
  }
  EXPECT_THAT(host_values<float>(x), ElementsAre(8, 8));
  Tensor host;
  {
    const auto staging = make_staging(x);
    host = staging->host();
    staging->fetch(x, host);
  }
  EXPECT_THAT(host_values<float>(host), ElementsAre(8, 8));
}

TEST(CudaStaging, OtherMemoryTakesThePlaceOfPinnedMemory) {
  const NoPinnedMemory none;
  EXPECT_EQ(message_of<DeviceError>([] { allocate_pinned(Cuda{0}, 4); }), "device cuda:0: there is no pinned memory");
  const Tensor x = on_gpu({1, 2, 3});
  const auto staging = make_staging(x);
  staging->fetch(x, staging->host());
  staging->wait();
  EXPECT_THAT(host_values<float>(staging->host()), ElementsAre(1, 2, 3));
  staging->host().fill(4);
  staging->send(staging->host(), x);
  EXPECT_THAT(host_values<float>(x), Each(4));
}

}  // namespace
}  // namespace attune::cuda
