#include "attune/base/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>

namespace attune {
namespace {

// Keeps the processor busy for long enough to be seen by any clock.
void work(int64_t& done, int64_t amount) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
  done += amount;
}

ProfileEntry entry(const Profile& profile, const std::string& name) {
  const std::vector<ProfileEntry> entries = profile.entries();
  const auto found = std::ranges::find(entries, name, &ProfileEntry::name);
  return found == entries.end() ? ProfileEntry{} : *found;
}

TEST(Profile, NothingIsRecordedWithoutOne) {
  const ProfileScope before("linear");
  const Profile profile;
  { const ProfileScope scope("attention"); }
  EXPECT_EQ(profile.entries().size(), 1u);
  EXPECT_EQ(entry(profile, "linear").calls, 0) << "it was opened before there was a profile";
  std::thread([] { const ProfileScope other("softmax"); }).join();
  EXPECT_EQ(profile.entries().size(), 1u) << "a profile is its thread's";
}

TEST(Profile, ScopesNestAndTheirOwnTimesAddUp) {
  int64_t done = 0;
  Profile profile([&] { return done; });
  profile.keep_events();
  {
    const ProfileScope step("step");
    work(done, 1);
    for (int i = 0; i < 2; ++i) {
      const ProfileScope outer("linear", " backward");
      work(done, 10);
      const ProfileScope inner("matmul");
      work(done, 100);
    }
  }
  EXPECT_EQ(entry(profile, "step").calls, 1);
  EXPECT_EQ(entry(profile, "linear backward").calls, 2);
  EXPECT_EQ(entry(profile, "matmul").calls, 2);
  EXPECT_EQ(entry(profile, "step").work, 1) << "without what was done within it";
  EXPECT_EQ(entry(profile, "linear backward").work, 20);
  EXPECT_EQ(entry(profile, "matmul").work, 200);

  const std::vector<ProfileEvent> events = profile.take_events();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events.front().name, "matmul");
  const ProfileEvent& step = events.back();
  EXPECT_EQ(step.name, "step");
  EXPECT_EQ(step.work, 221) << "of an event all work";
  double sum = 0;
  for (const ProfileEntry& e : profile.entries()) {
    EXPECT_GT(e.seconds, 0) << e.name;
    sum += e.seconds;
  }
  EXPECT_NEAR(sum, step.seconds, 1e-9 * step.seconds);
  for (const ProfileEvent& e : events) {
    EXPECT_GE(e.begin, step.begin);
    EXPECT_LE(e.begin + e.seconds, step.begin + step.seconds + 1e-9);
  }
  EXPECT_TRUE(profile.take_events().empty());
}

TEST(Profile, TheLongestComesFirst) {
  const Profile profile;
  for (const int times : {1, 4, 2}) {
    const ProfileScope scope(std::to_string(times));
    if (times == 4) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // whatever else the machine does
  }
  const std::vector<ProfileEntry> entries = profile.entries();
  EXPECT_EQ(entries.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(entries, std::ranges::greater{}, &ProfileEntry::seconds));
  EXPECT_EQ(entries.front().name, "4");
}

TEST(Profile, OfTwoTheInnerOneRecords) {
  const Profile outer;
  {
    const Profile inner;
    { const ProfileScope scope("linear"); }
    EXPECT_EQ(entry(inner, "linear").calls, 1);
  }
  { const ProfileScope scope("attention"); }
  EXPECT_EQ(entry(outer, "linear").calls, 0);
  EXPECT_EQ(entry(outer, "attention").calls, 1);
}

TEST(Profile, AnExceptionEndsItsScopes) {
  const Profile profile;
  try {
    const ProfileScope outer("linear");
    const ProfileScope inner("matmul");
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
  }
  { const ProfileScope scope("softmax"); }
  for (const char* name : {"linear", "matmul", "softmax"}) EXPECT_EQ(entry(profile, name).calls, 1) << name;
}

}  // namespace
}  // namespace attune
