// kill -9 at random moments of a run: what comes out in the end is, to the bit, what a run without kills makes.
// ATTUNE_KILLS is the number of kills of each kind of run; campaigns set it, the suite makes a few.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "attune/base/random.h"
#include "tests/integration/train_fixture.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

int kills_to_make() {
  const char* given = std::getenv("ATTUNE_KILLS");
  return given != nullptr ? std::atoi(given) : 3;
}

class KillsTest : public TrainFixture, public ::testing::WithParamInterface<int> {
 protected:
  KillsTest() {
    write_reverse_text(folder_, "valid", 30, 2, 5, 2);
    config_.train = {.steps = 60,
                     .batch_tokens = 64,
                     .log_every = 1,
                     .valid_every = 6,
                     .valid_beam_size = 2,
                     .checkpoint_every = 4,
                     .keep_checkpoints = 5,
                     .average_checkpoints = 3,
                     .threads = 1};
  }

  // Kills a run after the given time. False when it ended before.
  bool kill_after(milliseconds time, const std::string& run, bool resume, Random& random) {
    forget_processes(GetParam());
    const std::set<fs::path> left_before = temporaries(run);
    RunningCommand running(command(run, resume, GetParam()), kOptions);
    std::this_thread::sleep_for(time);
    if (!running.running()) return running.wait().status != 0;
    pid_t rank = 0;
    while (GetParam() > 1 && rank == 0 && running.running())  // mpirun may not have started it
      rank = process_of(static_cast<int>(random.below(static_cast<uint64_t>(GetParam()))));
    if (rank > 0) ::kill(rank, SIGKILL);
    if (GetParam() == 1) running.send(SIGKILL);
    const CommandResult result = running.wait();
    EXPECT_FALSE(result.timed_out) << result.errors;
    const bool killed = result.status != 0;
    std::set<fs::path> left;
    std::ranges::set_difference(temporaries(run), left_before, std::inserter(left, left.end()));
    if (killed) ++phases_[phase_of(result, left)];
    return killed;
  }

  // What a run that was killed has begun to write.
  std::set<fs::path> temporaries(const std::string& run) const {
    std::set<fs::path> found;
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / run, none))
      if (entry.path().extension() == ".tmp") found.insert(entry.path());
    return found;
  }

  // By what the run left half written and by its last line.
  std::string phase_of(const CommandResult& result, const std::set<fs::path>& left) const {
    for (const fs::path& file : left)
      return file.string().find("/checkpoints/") != std::string::npos ? "while writing a checkpoint" : "while writing";
    const std::string& text = result.errors;
    if (text.find("batches an epoch") == std::string::npos) return "start";
    constexpr std::string_view kStep = "step ";
    const size_t step = text.rfind(kStep);
    if (step == std::string::npos) return "first step";
    if (text.find("step 60 of 60") != std::string::npos) return "end";
    const size_t line = text.rfind('\n', step) + 1;  // 0 where there is none
    if (text.find("validation loss", line) != std::string::npos) return "after a validation";
    const bool at_validation = std::stoll(text.substr(step + kStep.size())) % config_.train.valid_every == 0;
    return at_validation && step == line ? "while validating" : "after a step";
  }

  std::map<std::string, int> phases_;
};

TEST_P(KillsTest, ResumedRunsAreTheSameToTheBit) {
  if (GetParam() > 1 && !has_several_ranks()) GTEST_SKIP() << "there is no MPI";
  const auto begin = std::chrono::steady_clock::now();
  run_to_the_end("whole", false, GetParam());
  const auto whole = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  Random random(static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  int kills = 0;
  for (int run = 0; kills < kills_to_make(); ++run) {
    const std::string name = "run" + std::to_string(run);
    const uint64_t most = 1 + random.below(4);  // of this run
    for (uint64_t k = 0; k < most && kills < kills_to_make(); ++k) {
      const milliseconds time(random.below(static_cast<uint64_t>(whole.count()) + 1));
      if (!kill_after(time, name, true, random)) break;
      ++kills;
    }
    run_to_the_end(name, true, GetParam());
    expect_the_same(name, "whole", GetParam());
    if (HasFailure()) FAIL() << "after " << kills << " kills, run " << run;
    fs::remove_all(folder_ / name);
  }
  std::string summary;
  for (const auto& [phase, count] : phases_) summary += phase + ": " + std::to_string(count) + "  ";
  std::cout << kills << " kills, " << GetParam() << " ranks: " << summary << "\n";
}

INSTANTIATE_TEST_SUITE_P(Ranks, KillsTest, ::testing::Values(1, 2));

// Preparing a text: killed anywhere and begun anew, the folder is what it would have been.
TEST(PrepareKillsTest, APreparedTextIsWholeOrNotThere) {
  const TemporaryFolder folder(memory_folder());
  write_reverse_text(folder, "train", 4000, 2, 9, 1);
  write_file(folder / "run.toml", write_toml(reverse_config(folder)));
  const auto prepare = [&](const std::string& name) {
    return attune_command({"data", "prepare", (folder / "run.toml").string(), "--out", (folder / name).string()});
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_command(prepare("whole")).status, 0);
  const auto whole = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
  Random random(static_cast<uint64_t>(begin.time_since_epoch().count()));
  for (int kills = 0, late = 0; kills < kills_to_make() && late < 1000;) {
    RunningCommand running(prepare("text"));
    std::this_thread::sleep_for(milliseconds(random.below(static_cast<uint64_t>(whole.count()) + 1)));
    running.send(SIGKILL);
    running.wait().signal == SIGKILL ? ++kills : ++late;
    if (!fs::exists(folder / "text")) {
      EXPECT_EQ(run_command(prepare("text")).status, 0);
    }
    for (const auto& entry : fs::directory_iterator(folder / "whole"))
      EXPECT_EQ(read_file(entry.path()), read_file(folder / "text" / entry.path().filename())) << entry.path();
    fs::remove_all(folder / "text");
  }
}

}  // namespace
}  // namespace attune
