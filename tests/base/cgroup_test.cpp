#include "attune/base/cgroup.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

// A machine's control groups in a folder.
class Cgroups : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
  std::optional<double> processors() const {
    return cgroup_processors({.membership = folder_ / "membership", .mount = folder_ / "mount"});
  }
  std::optional<int64_t> memory() const {
    return cgroup_memory({.membership = folder_ / "membership", .mount = folder_ / "mount"});
  }
  TemporaryFolder folder_;
};

TEST_F(Cgroups, VersionTwoHasTheLeastLimitOfAllLevels) {
  write("membership", "0::/work/job\n");
  EXPECT_FALSE(processors());
  write("mount/work/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(processors());
  write("mount/work/cpu.max", "350000 100000\n");
  EXPECT_EQ(processors(), 3.5);
  write("mount/work/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(processors(), 0.5);
}

TEST_F(Cgroups, InAContainerThePathMayBeThatOfTheHost) {
  write("membership", "0::/docker/4e5a/payload\n");
  write("mount/cpu.max", "200000 100000\n");
  EXPECT_EQ(processors(), 2);
}

TEST_F(Cgroups, VersionOneHasItsFilesUnderTheControllersName) {
  write("membership", "11:memory:/work\n4:cpu,cpuacct:/work\n1:name=systemd:/work\n");
  write("mount/memory/work/cpu.cfs_quota_us", "1\n");
  write("mount/cpu,cpuacct/work/cpu.cfs_period_us", "100000\n");
  write("mount/cpu,cpuacct/work/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(processors()) << "no limit";
  write("mount/cpu,cpuacct/work/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(processors(), 1.5);
  write("mount/cpu/cpu.cfs_period_us", "50000\n");
  write("mount/cpu/cpu.cfs_quota_us", "60000\n");
  EXPECT_EQ(processors(), 1.2) << "of the level above, under the other name";
}

TEST_F(Cgroups, FilesThatCannotBeReadSayNothing) {
  EXPECT_FALSE(processors());
  write("membership", "nonsense\n0::\n0::/a\n");
  for (const char* text : {"", "100000", "many 100000", "100000 0", "-5 100000", "99999999999999999999999 x"}) {
    write("mount/a/cpu.max", text);
    EXPECT_FALSE(processors()) << text;
  }
}

TEST_F(Cgroups, MemoryIsTheLeastOfAllLevelsToo) {
  write("membership", "0::/work/job\n");
  EXPECT_FALSE(memory());
  write("mount/work/job/memory.max", "max\n");
  EXPECT_FALSE(memory());
  write("mount/work/memory.max", "4294967296\n");
  EXPECT_EQ(memory(), int64_t{4} << 30);
  write("mount/work/job/memory.max", "1073741824\n");
  EXPECT_EQ(memory(), int64_t{1} << 30);
}

TEST_F(Cgroups, MemoryOfVersionOne) {
  write("membership", "11:memory:/work\n4:cpu,cpuacct:/work\n");
  write("mount/cpu/work/memory.limit_in_bytes", "1\n");
  write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory(), 9223372036854771712) << "no limit";
  write("mount/memory/work/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(memory(), int64_t{512} << 20);
}

TEST_F(Cgroups, MemoryThatIsNoNumberSaysNothing) {
  write("membership", "0::/a\n");
  for (const char* text : {"", "many", "-1", "0"}) {
    write("mount/a/memory.max", text);
    EXPECT_FALSE(memory()) << text;
  }
}

}  // namespace
}  // namespace attune
