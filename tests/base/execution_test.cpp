#include "attune/base/execution.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "attune/base/check.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/base/processors.h"
#include "attune/base/profile.h"

namespace attune {
namespace {

TEST(Execution, ScopesChangeACopyAndNest) {
  EXPECT_TRUE(execution().recording);
  EXPECT_FALSE(execution().dropout);
  {
    const ExecutionScope outer([](Execution& e) { e.dropout = DropoutStep{.seed = 3, .step = 4}; });
    {
      const ExecutionScope inner([](Execution& e) { e.recording = false; });
      EXPECT_FALSE(execution().recording);
      EXPECT_EQ(execution().dropout->step, 4u);
    }
    EXPECT_TRUE(execution().recording);
    EXPECT_TRUE(execution().dropout);
  }
  EXPECT_FALSE(execution().dropout);
}

TEST(Execution, AThreadBeginsWithTheDefaults) {
  const ExecutionScope scope([](Execution& e) { e.recording = false; });
  bool recording = false;
  std::thread([&] { recording = execution().recording; }).join();
  EXPECT_TRUE(recording);
}

TEST(Execution, AChangeThatThrowsChangesNothing) {
  EXPECT_THROW(ThreadScope(-1), ConfigError);
  EXPECT_THROW(ThreadScope(kMostThreads + 1), ConfigError);
  EXPECT_EQ(thread_count(), default_thread_count());
}

TEST(Parallel, ThreadsHaveTheContextOfTheirCaller) {
  const ThreadScope three(3);
  const ExecutionScope scope([](Execution& e) {
    e.recording = false;
    e.dropout = DropoutStep{.seed = 5, .step = 6};
  });
  const Profile profile;
  std::mutex mutex;
  std::set<std::thread::id> threads, profiled_threads;
  parallel_for(64, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    EXPECT_FALSE(execution().recording);
    EXPECT_EQ(execution().dropout->step, 6u);
    EXPECT_EQ(thread_count(), 1) << "nothing is parallel within";
    if (execution().profile != nullptr) profiled_threads.insert(std::this_thread::get_id());
  });
  EXPECT_LE(threads.size(), 3u);
  profiled_threads.erase(std::this_thread::get_id());
  EXPECT_TRUE(profiled_threads.empty()) << "a profile is one thread's";
  EXPECT_EQ(thread_count(), 3);
}

TEST(Parallel, TheFirstExceptionIsThrownAndTheContextComesBack) {
  const ThreadScope two(2);
  EXPECT_THROW(parallel_for(100, 1, [](int64_t begin, int64_t) { check_range("n", begin, 0, 50); }), ConfigError);
  EXPECT_EQ(thread_count(), 2);
}

TEST(Execution, WorkThatNobodyWaitsForEnds) {
  bool unwanted = false;
  const ExecutionScope scope([&](Execution& e) { e.unwanted = [&] { return unwanted; }; });
  EXPECT_NO_THROW(stop_if_unwanted());
  unwanted = true;
  EXPECT_THROW(stop_if_unwanted(), Interrupted);
  const ExecutionScope inner([](Execution& e) { e.unwanted = nullptr; });
  EXPECT_NO_THROW(stop_if_unwanted());
}

TEST(Parallel, OtherThreadsDoNotAskWhetherTheWorkIsWanted) {
  const std::thread::id caller = std::this_thread::get_id();
  const ExecutionScope scope([&](Execution& e) {
    e.threads = 4;
    e.unwanted = [&] {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      return false;
    };
  });
  parallel_for(64, 1, [](int64_t, int64_t) { stop_if_unwanted(); });
}

TEST(Parallel, TheCallersOpenMpSettingsStay) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  {
    const ThreadScope two(2);
    parallel_for(100, 1, [](int64_t, int64_t) {});
    EXPECT_EQ(omp_get_max_threads(), 5);
  }
  omp_set_num_threads(before);
}

TEST(Parallel, InARegionOfTheCallerThereIsOneThread) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not see that OpenMP's threads wait for each other";
#endif
  std::mutex mutex;
  std::set<int> levels;
#pragma omp parallel num_threads(2)
  parallel_for(16, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    levels.insert(omp_get_level());
  });
  EXPECT_EQ(levels, std::set<int>{1});
}

}  // namespace
}  // namespace attune
