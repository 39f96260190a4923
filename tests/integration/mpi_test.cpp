// attune train under mpirun, on this machine: several processes make one run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>
#include <tuple>

#include "attune/io/checkpoint.h"
#include "tests/integration/cli_fixture.h"
#include "tests/integration/train_fixture.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr int64_t kNoEnd = 1'000'000;  // more steps than are done before the test ends the run

class MpiTest : public TrainFixture {
 protected:
  void SetUp() override {
    if (!has_several_ranks()) GTEST_SKIP() << "there is no MPI";
    config_.train.threads = 1;
    config_.train.log_every = 1;
    config_.train.valid_every = 10;
    config_.train.checkpoint_every = 10;
  }

  std::map<std::string, std::string> last_checkpoint(const std::string& run) const {
    return tensors_of(checkpoint_file(folder_ / run, config_.train.steps));
  }
  // Ten steps more than the newest checkpoint, resumed, and the same number in one go.
  void expect_resumes_as_if_never_interrupted(const std::string& run, const std::string& said) {
    const std::optional<int64_t> newest = CheckpointFolder(folder_ / run / "checkpoints", 0).newest().step;
    ASSERT_TRUE(newest.has_value()) << said;
    config_.train.steps = *newest + 10;
    config_.train.checkpoint_every = 10;
    run_to_the_end("whole", false, 2);
    EXPECT_THAT(run_to_the_end(run, true, 2).errors, HasSubstr("going on from step "));
    EXPECT_EQ(last_checkpoint(run), last_checkpoint("whole"));
  }

  // Of the steps, in their order.
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> all;
    for (const Json& line : json_lines(read_file(folder_ / run / "metrics.jsonl")))
      if (line.contains("loss")) all.push_back(line.at("loss").get<double>());
    return all;
  }
  void expect_losses_near(const std::string& run, const std::string& other) const {
    const std::vector<double> a = losses(run), b = losses(other);
    EXPECT_EQ(a.size(), static_cast<size_t>(config_.train.steps));
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * std::abs(b[i])) << run << ", step " << i + 1;
  }
};

// Sums by MPI's own operations, in an order that it chooses.
class MpiSumsTest : public MpiTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    MpiTest::SetUp();
    config_.optimizer.epsilon = 1e-3;  // so that rounding is not blown up to the full rate
    config_.train.shard_optimizer = std::get<1>(GetParam());
    config_.train.deterministic_reduction = false;
  }
  const int ranks_ = std::get<0>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(RanksAndSharding, MpiSumsTest, ::testing::Combine(::testing::Values(2, 3), ::testing::Bool()),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "sharded" : "whole");
                         });

// Whether the process ends within seconds. One that has ended, and whose parent has not asked for its status, is a
// zombie.
bool ends(pid_t process) {
  const fs::path status = fs::path("/proc") / std::to_string(process) / "stat";
  for (int i = 0; i < 100; ++i) {
    std::ifstream file(status);
    std::string line;
    if (!std::getline(file, line) || line.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

TEST_F(MpiTest, FourProcessesTrainAsOne) {
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.optimizer.epsilon = 1e-3;
  config_.train.shard_optimizer = true;
  run_to_the_end("one");
  const CommandResult four = run_to_the_end("four", false, 4);
  EXPECT_EQ(count_of(four.errors, "all steps are done"), 1u) << four.errors;
  EXPECT_EQ(count_of(four.errors, "step 20: validation loss"), 1u) << four.errors;
  ASSERT_NO_FATAL_FAILURE(expect_models_near("one", "four", 1e-5));
  EXPECT_THAT(read_file(folder_ / "four" / "metrics.jsonl"), HasSubstr("\"communication_hidden\":"));
}

TEST_P(MpiSumsTest, TrainToTheLossesOfTheFixedOrder) {
  run_to_the_end("library", false, ranks_);
  config_.train.deterministic_reduction = true;
  run_to_the_end("fixed", false, ranks_);
  expect_losses_near("library", "fixed");
}

TEST_P(MpiSumsTest, AResumedRunGoesOn) {
  run_to_the_end("whole", false, ranks_);
  config_.train.steps = 10;
  run_to_the_end("parts", false, ranks_);
  config_.train.steps = 20;
  EXPECT_THAT(run_to_the_end("parts", true, ranks_).errors, HasSubstr("going on from step 10"));
  expect_losses_near("parts", "whole");
}

// It checks each sum, also where some ranks have no number of their own.
TEST_F(MpiTest, BenchReduceTimesOurSumsAndThoseOfMpi) {
  const CommandResult result = run_command(
      under_mpi(3, attune_command({"bench", "reduce", "--bytes", "4,4096", "--rounds", "2", "--json"})), kOptions);
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json.at("ranks"), 3);
  EXPECT_EQ(json.at("network"), "MPI");
  std::vector<std::string> rows;
  for (const Json& row : json.at("results")) {
    rows.push_back(std::to_string(row.at("bytes").get<int64_t>()) + " " + row.at("way").get<std::string>());
    EXPECT_EQ(row.at("rounds"), 2);
    EXPECT_GT(row.at("median_ms").get<double>(), 0);
  }
  EXPECT_THAT(rows, ElementsAre("4 fixed", "4 mpi_allreduce", "4 mpi_reduce_scatter_allgather", "4096 fixed",
                                "4096 mpi_allreduce", "4096 mpi_reduce_scatter_allgather"));
}

TEST_F(MpiTest, AKilledRankEndsTheJobAndResumeGoesOn) {
  config_.train.steps = kNoEnd;
  RunningCommand running(command("killed", false, 2), kOptions);
  ASSERT_TRUE(running.wait_for_error_text("step 22 "));
  const pid_t process = process_of(1);
  ASSERT_GT(process, 0);
  ::kill(process, SIGKILL);
  const CommandResult result = running.wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.output + result.errors, HasSubstr("signal 9"));
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "model"));
  expect_resumes_as_if_never_interrupted("killed", result.errors);
}

TEST_F(MpiTest, SigtermAtOneRankStopsAllAfterTheSameStep) {
  config_.train.steps = kNoEnd;
  config_.train.checkpoint_every = kNoEnd;  // so that there is a checkpoint only because it was stopped
  RunningCommand running(command("stopped", false, 2), kOptions);
  ASSERT_TRUE(running.wait_for_error_text("step 12 "));
  const pid_t process = process_of(1);
  ASSERT_GT(process, 0);
  ::kill(process, SIGTERM);  // mpirun itself passes a signal on, and a second later kills
  const CommandResult result = running.wait();
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "stopped" / "model"));
  expect_resumes_as_if_never_interrupted("stopped", result.errors);
}

// mpirun passes the signal on, waits a moment and kills: before its processes run, while they begin, and later.
TEST_F(MpiTest, SigtermToMpirunAtAnyTimeOfTheStartEndsAll) {
  for (const int milliseconds : {20, 150, 400, 900}) {
    config_.train.steps = kNoEnd;
    forget_processes(2);
    RunningCommand running(command("run", true, 2), kOptions);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    running.send(SIGTERM);
    const CommandResult result = running.wait();
    EXPECT_FALSE(result.timed_out) << milliseconds;
    EXPECT_NE(result.status, 0) << milliseconds;
    for (const int rank : {0, 1})
      if (const pid_t process = process_of(rank); process > 0) {
        EXPECT_TRUE(ends(process)) << "rank " << rank << " still runs after " << milliseconds << " ms";
      }
  }
  const std::optional<int64_t> newest = CheckpointFolder(folder_ / "run" / "checkpoints", 0).newest().step;
  config_.train.steps = newest.value_or(0) + 10;
  run_to_the_end("run", true, 2);
}

// A file that is there for one rank alone, and an error that all have.
TEST_F(MpiTest, AnErrorIsSaidOnceWithItsRank) {
  std::vector<std::string> words = command("run", false, 2);
  *std::next(std::ranges::find(words, "-c")) =
      "if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- \"$@\" --set train.threads=5000; fi; exec \"$0\" \"$@\"";
  const CommandResult one = run_command(words, kOptions);
  EXPECT_FALSE(one.timed_out);
  EXPECT_NE(one.status, 0);
  EXPECT_THAT(one.errors, HasSubstr("train.threads = 5000"));
  EXPECT_EQ(count_of(one.errors, "attune: rank 1: "), 1u) << one.errors;
  EXPECT_EQ(count_of(one.errors, "attune: rank"), 1u) << one.errors;

  words = command("run", false, 2);
  words.insert(words.end(), {"--set", "train.threads=5000"});
  const CommandResult all = run_command(words, kOptions);
  EXPECT_NE(all.status, 0);
  EXPECT_THAT(all.errors, HasSubstr("train.threads = 5000"));
  EXPECT_EQ(count_of(all.errors, "attune: rank"), 1u) << all.errors;
}

}  // namespace
}  // namespace attune
