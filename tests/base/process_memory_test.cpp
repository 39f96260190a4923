#include "attune/base/process_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "tests/support/temporary_folder.h"

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

TEST(ProcessMemory, IsLimitedByTheMachineAndByControlGroups) {
  const TemporaryFolder folder;
  const CgroupFiles files{.membership = folder / "membership", .mount = folder / "mount"};
  const int64_t machine = process_memory_limit(files);
  EXPECT_GT(machine, int64_t{64} << 20);
  std::ofstream(folder / "membership") << "0::/\n";
  std::filesystem::create_directories(folder / "mount");
  std::ofstream(folder / "mount" / "memory.max") << "9223372036854771712\n";
  EXPECT_EQ(process_memory_limit(files), machine);
  std::ofstream(folder / "mount" / "memory.max") << "67108864\n";
  EXPECT_EQ(process_memory_limit(files), int64_t{64} << 20);
}

}  // namespace
}  // namespace attune
