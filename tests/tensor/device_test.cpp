#include "attune/tensor/device.h"

#include <gtest/gtest.h>

#include "attune/tensor/built_devices.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/tensor.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(Device, HasAName) {
  EXPECT_EQ(Device::named("cpu"), Device(Cpu{}));
  EXPECT_EQ(Device(Cuda{3}).text(), "cuda:3");
  EXPECT_NE(Device(Cuda{0}), Device(Cuda{1}));
  EXPECT_FALSE(Device(Cuda{}).is_host());
}

TEST(Device, RefusesNamesThatItDoesNotKnow) {
  for (const char* name : {"", "gpu", "plain", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "CPU"})
    for (const auto device : {&Device::named, &Device::of_name})
      EXPECT_EQ(message_of<ConfigError>([&] { device(name); }),
                std::string("device = ") + name + ": needs cpu, cuda, or cuda:N with the number of a GPU");
}

TEST(Device, ANameAloneNeedsNoGpu) {
  EXPECT_EQ(Device::of_name("cpu"), Device(Cpu{}));
  EXPECT_EQ(Device::of_name("cuda"), Device(Cuda{0}));
  EXPECT_EQ(Device::of_name("cuda:63"), Device(Cuda{63}));
}

TEST(Device, ABuildWithoutCudaSaysSo) {
  if (kBuiltWithCuda) GTEST_SKIP() << "this build has CUDA";
  const std::string expected = "device cuda:1: Attune was built without CUDA (docs/cuda.md)";
  EXPECT_EQ(message_of<DeviceError>([] { Device::named("cuda:1"); }), expected);
  EXPECT_EQ(message_of<DeviceError>([] { Tensor::zeros({2}, {.device = Cuda{1}}); }), expected);
  EXPECT_EQ(message_of<DeviceError>([] { count_cuda_devices(); }),
            "device cuda:0: Attune was built without CUDA (docs/cuda.md)");
}

}  // namespace
}  // namespace attune
