#include "tests/support/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "attune/base/environment.h"
#include "attune/base/error.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune {
namespace {

const char* wanted_device() {
  return std::getenv("ATTUNE_TEST_DEVICE");
}

// What is missing if the wanted device cannot be used; empty: nothing.
std::string missing_device() {
  if (wanted_device() == nullptr) return "";
  try {
    Device::named(wanted_device());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Skips each test of the program if the device that they are to run on cannot be used.
class SkipWithoutDevice final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override {
    static const std::string missing = missing_device();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

// The program owns the listener.
[[maybe_unused]] const bool registered =
    (testing::UnitTest::GetInstance()->listeners().Append(new SkipWithoutDevice), true);

}  // namespace

int usable_gpus() {
  try {
    return count_cuda_devices();
  } catch (const DeviceError&) {
    return 0;
  }
}

bool looks_for_races() {
  return environment_switch("ATTUNE_CUDA_RACES");
}

std::vector<Device> devices_under_test() {
  if (wanted_device() == nullptr) return {Plain{}};
  return {Device::named(wanted_device())};
}

std::vector<Device> all_devices() {
  std::vector<Device> devices = {Cpu{}};
  for (const Device& device : devices_under_test()) devices.push_back(device);
  return devices;
}

}  // namespace attune
