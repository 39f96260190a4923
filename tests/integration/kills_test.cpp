// kill -9 at random moments of a run: what comes out in the end is, to the bit, what a run without kills makes.
// ATTUNE_KILLS is the number of kills of each kind of run; campaigns set it, the suite makes a few.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

#include "attune/dist/mpi_transport.h"
#include "tests/integration/cli_fixture.h"
#include "tests/train/reverse_task.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

int kills_to_make() {
  const char* given = std::getenv("ATTUNE_KILLS");
  return given != nullptr ? std::atoi(given) : 3;
}

class KillsTest : public ::testing::TestWithParam<int> {
 protected:
  KillsTest() {
    write_reverse_text(folder_, "train", 200, 2, 5, 1);
    write_reverse_text(folder_, "valid", 30, 2, 5, 2);
    config_ = reverse_config(folder_);
    config_.train = {.steps = 60,
                     .batch_tokens = 64,
                     .log_every = 1,
                     .valid_every = 6,
                     .valid_beam_size = 2,
                     .checkpoint_every = 4,
                     .keep_checkpoints = 5,
                     .average_checkpoints = 3,
                     .threads = 1};
    write_file(folder_ / "run.toml", write_toml(config_));
  }

  // Each rank of several writes its process to pid.<rank> before it becomes attune.
  std::vector<std::string> command(const std::string& run, bool resume) const {
    std::vector<std::string> words =
        attune_command({"train", (folder_ / "run.toml").string(), "--out", (folder_ / run).string()});
    if (resume) words.emplace_back("--resume");
    if (GetParam() == 1) return words;
    const std::vector<std::string> launcher = {
        "mpirun",
        "-n",
        std::to_string(GetParam()),
        "--oversubscribe",
        "--allow-run-as-root",
        "--bind-to",
        "none",
        "--mca",
        "btl",
        "self,vader,tcp",
        "--mca",
        "btl_vader_single_copy_mechanism",
        "none",
        "sh",
        "-c",
        "echo $$ > " + (folder_ / "pid.$OMPI_COMM_WORLD_RANK").string() + "; exec \"$0\" \"$@\""};
    words.insert(words.begin(), launcher.begin(), launcher.end());
    return words;
  }
  CommandResult run_to_the_end(const std::string& run, bool resume) const {
    const CommandResult result = run_command(command(run, resume), {.input = {}, .timeout = std::chrono::seconds(200)});
    EXPECT_EQ(result.status, 0) << result.errors;
    return result;
  }

  // One of the ranks; 0: it has not begun.
  pid_t victim(Random& random) const {
    const fs::path file = folder_ / ("pid." + std::to_string(random.below(static_cast<uint64_t>(GetParam()))));
    std::error_code ignored;
    if (fs::file_size(file, ignored) < 2 || ignored) return 0;
    return std::stoi(read_file(file));
  }

  // Kills a run after the given time. False when it ended before.
  bool kill_after(milliseconds time, const std::string& run, bool resume, Random& random) {
    for (int rank = 0; rank < GetParam(); ++rank) fs::remove(folder_ / ("pid." + std::to_string(rank)));
    RunningCommand running(command(run, resume), {.input = {}, .timeout = std::chrono::seconds(200)});
    std::this_thread::sleep_for(time);
    if (!running.running()) return running.wait().status != 0;
    pid_t rank = 0;
    while (GetParam() > 1 && rank == 0 && running.running()) rank = victim(random);  // mpirun may not have started it
    if (rank > 0) ::kill(rank, SIGKILL);
    if (GetParam() == 1) running.send(SIGKILL);
    const CommandResult result = running.wait();
    EXPECT_FALSE(result.timed_out) << result.errors;
    const bool killed = result.status != 0;
    if (killed) ++phases_[phase_of(result)];
    return killed;
  }

  // By the last line of the run.
  static std::string phase_of(const CommandResult& result) {
    const std::string& text = result.errors;
    if (text.find("batches an epoch") == std::string::npos) return "start";
    const size_t step = text.rfind("step "), validation = text.rfind("validation loss");
    if (step == std::string::npos) return "first step";
    if (text.find("step 60 of 60") != std::string::npos) return "end";
    return validation != std::string::npos && text.find('\n', validation) + 1 >= text.size() ? "after a validation"
                                                                                             : "after a step";
  }

  void expect_the_same(const std::string& run) const {
    EXPECT_EQ(read_file(folder_ / run / "model/model.safetensors"),
              read_file(folder_ / "whole/model/model.safetensors"));
    EXPECT_EQ(read_file(folder_ / run / "best/model.safetensors"), read_file(folder_ / "whole/best/model.safetensors"));
    EXPECT_EQ(tensors_of(checkpoint_file(folder_ / run, config_.train.steps)),
              tensors_of(checkpoint_file(folder_ / "whole", config_.train.steps)));
    if (GetParam() == 1) {  // the metrics of several ranks have what communication cost
      EXPECT_EQ(metrics_of(folder_ / run), metrics_of(folder_ / "whole"));
    }
  }

  TemporaryFolder folder_{memory_folder()};
  RunConfig config_;
  std::map<std::string, int> phases_;
};

TEST_P(KillsTest, ResumedRunsAreTheSameToTheBit) {
  if (GetParam() > 1 && (!has_mpi() || run_command({"sh", "-c", "command -v mpirun"}).status != 0))
    GTEST_SKIP() << "there is no MPI";
  const auto begin = std::chrono::steady_clock::now();
  run_to_the_end("whole", false);
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
    run_to_the_end(name, true);
    expect_the_same(name);
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
