#include "attune/base/thread_team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <numeric>
#include <vector>

#include "attune/base/parallel.h"

namespace attune {
namespace {

using Pieces = ThreadTeam::Pieces;

// How often each piece was taken.
std::vector<int> times_taken(ThreadTeam& team, int threads, int64_t pieces) {
  std::vector<std::atomic<int>> taken(static_cast<size_t>(pieces));
  team.run(threads, pieces, [&](Pieces& rest) {
    for (int64_t piece = rest.next(); piece < pieces; piece = rest.next()) ++taken[static_cast<size_t>(piece)];
  });
  return {taken.begin(), taken.end()};
}

TEST(ThreadTeam, TakesEachPieceOnce) {
  ThreadTeam team;
  for (const int threads : {1, 2, 3, 8})
    for (const int64_t pieces : {0, 1, 2, 7, 1000})
      EXPECT_EQ(times_taken(team, threads, pieces), std::vector<int>(static_cast<size_t>(pieces), 1))
          << threads << " threads, " << pieces << " pieces";
}

TEST(ThreadTeam, ServesManyCallersAtOnce) {
  ThreadTeam team;
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 200; ++i) wrong += times_taken(team, 2 + c % 3, 16) != std::vector<int>(16, 1);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// The thread with piece 0 is held up until the others have done all the rest.
TEST(ThreadTeam, NobodysShareWaitsForAThreadThatIsHeldUp) {
  ThreadTeam team;
  constexpr int64_t kPieces = 64;
  std::atomic<int64_t> done{0};
  bool all_others_done = false;
  team.run(2, kPieces, [&](Pieces& rest) {
    for (int64_t piece = rest.next(); piece < kPieces; piece = rest.next()) {
      if (piece == 0) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (done < kPieces - 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        all_others_done = done == kPieces - 1;
      } else {
        ++done;
      }
    }
  });
  EXPECT_TRUE(all_others_done);
}

// Workers that wait take no processor time.
TEST(ThreadTeam, SleepsWhenThereIsNoWork) {
  ThreadTeam team;
  times_taken(team, 8, 64);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 0.1);
  EXPECT_EQ(times_taken(team, 8, 64), std::vector<int>(64, 1)) << "and wakes";
}

TEST(ThreadTeam, AForkedProcessHasATeamOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a forked process";
#endif
  const ThreadScope three(3);
  const auto sum = [] {
    std::atomic<int64_t> total{0};
    parallel_for(1000, 1, [&](int64_t begin, int64_t) { total += begin; });
    return total.load();
  };
  EXPECT_EQ(sum(), 499500);
  const pid_t child = fork();
  if (child == 0) _exit(sum() == 499500 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace attune
