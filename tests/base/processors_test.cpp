#include "attune/base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "attune/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

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

TEST(ThreadCount, FollowsTheEnvironmentThenAffinityAndQuota) {
  EXPECT_EQ(choose_thread_count({.affinity = 8}), 8);
  EXPECT_EQ(choose_thread_count({.affinity = 8, .quota = 2.9}), 2);
  EXPECT_EQ(choose_thread_count({.affinity = 8, .quota = 0.5}), 1);
  EXPECT_EQ(choose_thread_count({.affinity = 8, .quota = 64}), 8);
  EXPECT_EQ(choose_thread_count({.omp_num_threads = "3", .affinity = 8, .quota = 2}), 3);
  EXPECT_EQ(choose_thread_count({.omp_num_threads = "3,2", .affinity = 8}), 3);
  EXPECT_EQ(choose_thread_count({.attune_threads = "12", .omp_num_threads = "3", .affinity = 8, .quota = 2}), 12);
}

TEST(ThreadCount, OmpNumThreadsIsNeverMoreThanThereAre) {
  EXPECT_EQ(choose_thread_count({.omp_num_threads = "100000", .affinity = 8}), 8);
  EXPECT_EQ(choose_thread_count({.omp_num_threads = "99999999999999999999999", .affinity = 8}), 8);
  for (const char* wrong : {"", "0", "-2", "many"})
    EXPECT_EQ(choose_thread_count({.omp_num_threads = wrong, .affinity = 8}), 8) << wrong;
}

TEST(ThreadCount, AttuneThreadsThatCannotBeAreAnError) {
  for (const char* wrong : {"", "0", "-2", "many", "2x", "1025", "99999999999999999999999"}) {
    const std::string message =
        message_of<ConfigError>([&] { choose_thread_count({.attune_threads = wrong, .affinity = 8}); });
    EXPECT_THAT(message, HasSubstr("ATTUNE_THREADS = \"" + std::string(wrong) + "\": needs a number from 1 to 1024"));
  }
}

TEST(ThreadCount, ThisMachineHasProcessors) {
  EXPECT_GE(processors_by_affinity(), 1);
  EXPECT_GE(default_thread_count(), 1);
}

}  // namespace
}  // namespace attune
