#include "attune/base/patience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds, std::chrono::milliseconds;

Clock::duration time_of_pause(const Patience& patience) {
  const auto begin = Clock::now();
  patience.pause();
  return Clock::now() - begin;
}

// A system may let a thread sleep longer than it asked, never less.
TEST(Patience, PausesGrowWithTheTimeWaited) {
  const Patience patience;
  std::this_thread::sleep_for(milliseconds(4));
  EXPECT_GE(time_of_pause(patience), milliseconds(4) / 16);
  std::this_thread::sleep_for(milliseconds(12));
  EXPECT_GE(time_of_pause(patience), Patience::kLongest);
}

TEST(Patience, NoPauseIsLong) {
  const Patience patience;
  std::this_thread::sleep_for(milliseconds(100));
  auto shortest = time_of_pause(patience);
  for (int i = 0; i < 20; ++i) shortest = std::min(shortest, time_of_pause(patience));
  EXPECT_LT(shortest, milliseconds(100) / 16) << "a system that is busy lets one sleep longer, but not every time";
}

}  // namespace
}  // namespace attune
