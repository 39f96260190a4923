#include "tests/support/devices.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "attune/base/error.h"

namespace attune {
namespace {

const char* wanted_device() {
  return std::getenv("ATTUNE_TEST_DEVICE");
}

// Skips all tests of the program if the device that they are to run on cannot be used.
class WantedDevice final : public testing::Environment {
 public:
  void SetUp() override {
    if (wanted_device() == nullptr) return;
    try {
      Device::named(wanted_device());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

[[maybe_unused]] const testing::Environment* const registered = testing::AddGlobalTestEnvironment(new WantedDevice);

}  // namespace

std::vector<Device> devices_under_test() {
  if (wanted_device() == nullptr) return {Plain{}};
  return {Device::named(wanted_device())};
}

}  // namespace attune
