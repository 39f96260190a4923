#include "attune/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace attune {
namespace {

constexpr const char* kSwitch = "ATTUNE_TEST_SWITCH";

bool is_on_with(const char* value) {
  ::setenv(kSwitch, value, 1);
  const bool on = environment_switch(kSwitch);
  ::unsetenv(kSwitch);
  return on;
}

TEST(EnvironmentSwitch, IsOffWithoutAValueAndWithZero) {
  EXPECT_FALSE(environment_switch(kSwitch));
  EXPECT_FALSE(is_on_with(""));
  EXPECT_FALSE(is_on_with("0"));
  EXPECT_TRUE(is_on_with("1"));
  EXPECT_TRUE(is_on_with("on"));
}

}  // namespace
}  // namespace attune
