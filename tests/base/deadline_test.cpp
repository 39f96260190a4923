#include "attune/base/deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(Deadline, IsSoManySecondsFromNow) {
  const auto before = std::chrono::steady_clock::now();
  EXPECT_GE(deadline_after(0.5, "timeout"), before + std::chrono::milliseconds(500));
  EXPECT_LT(deadline_after(0.5, "timeout"), before + std::chrono::minutes(1));
  EXPECT_GT(deadline_after(1e9, "timeout"), before + std::chrono::hours(24 * 365 * 30));
}

TEST(Deadline, RefusesWhatIsNoTime) {
  for (const double seconds : {0.0, -1.0, 1.1e9, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_THAT(message_of<ConfigError>([&] { deadline_after(seconds, "--timeout"); }), HasSubstr("--timeout: is "));
}

}  // namespace
}  // namespace attune
