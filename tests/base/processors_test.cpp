#include "attune/base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

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
