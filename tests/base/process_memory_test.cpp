#include "attune/base/process_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace attune {
namespace {

TEST(ProcessMemory, GrowsWithWhatIsUsedAndStaysBelowThePeak) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const int64_t before = resident_process_bytes().value();
  const std::vector<char> used(kBytes, 1);
  const int64_t with = resident_process_bytes().value();
  EXPECT_GT(before, 0);
  EXPECT_GT(with, before + kBytes / 2) << static_cast<int>(used.back());
  EXPECT_GE(peak_process_bytes(), with - (int64_t{1} << 20));  // the system counts the two at different moments
}

}  // namespace
}  // namespace attune
