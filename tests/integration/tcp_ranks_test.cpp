// attune train as two processes that were started without MPI, by torchrun's variables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "attune/io/checkpoint.h"
#include "tests/integration/cli_fixture.h"
#include "tests/integration/train_fixture.h"
#include "tests/support/devices.h"
#include "tests/support/free_port.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr int64_t kEndless = 1'000'000;  // more steps than are done before the test ends the run

class TcpRanksTest : public TrainFixture {
 protected:
  void SetUp() override {
    config_.train.threads = 1;
    config_.train.log_every = 1;
    config_.train.valid_every = 10;
    config_.train.checkpoint_every = 10;
  }

  // The commands of both ranks.
  std::vector<std::vector<std::string>> commands(const std::string& run, bool resume = false) const {
    return on_both(command(run, resume));
  }
  static std::vector<std::vector<std::string>> on_both(const std::vector<std::string>& program) {
    const std::string port = "MASTER_PORT=" + std::to_string(free_port());
    std::vector<std::vector<std::string>> both;
    for (const char* rank : {"RANK=0", "RANK=1"}) {
      std::vector<std::string> words = {
          "env", "-u",           "ATTUNE_MASTER_PORT",    "-u", "TORCHELASTIC_USE_AGENT_STORE",
          rank,  "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", port};
      words.insert(words.end(), program.begin(), program.end());
      both.push_back(words);
    }
    return both;
  }

  // Trains on both ranks, and returns what the first one says.
  std::string train_to_the_end(const std::string& run, bool resume = false) const {
    const auto both = commands(run, resume);
    RunningCommand first(both[0], kOptions), second(both[1], kOptions);
    const CommandResult one = first.wait(), two = second.wait();
    EXPECT_EQ(one.status, 0) << one.errors;
    EXPECT_EQ(two.status, 0) << two.errors;
    EXPECT_EQ(two.errors, "");
    return one.errors;
  }

  // Ten steps more than the newest checkpoint, resumed, and the same number in one go.
  void expect_goes_on(const std::string& run, const std::string& said) {
    const std::optional<int64_t> newest = CheckpointFolder(folder_ / run / "checkpoints", 0).newest().step;
    ASSERT_TRUE(newest.has_value()) << said;
    config_.train.steps = *newest + 10;
    config_.train.checkpoint_every = 10;
    train_to_the_end("whole");
    EXPECT_THAT(train_to_the_end(run, true), HasSubstr("going on from step "));
    expect_the_same(run, "whole", 2);
  }
};

TEST_F(TcpRanksTest, TwoProcessesTrainAsOne) {
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.optimizer.epsilon = 1e-3;
  config_.train.shard_optimizer = true;
  run_to_the_end("one");
  const std::string said = train_to_the_end("two");
  EXPECT_EQ(count_of(said, "all steps are done"), 1u) << said;
  EXPECT_EQ(count_of(said, "step 20: validation loss"), 1u) << said;
  ASSERT_NO_FATAL_FAILURE(expect_models_near("one", "two", 1e-5));
  EXPECT_THAT(read_file(folder_ / "two" / "metrics.jsonl"), HasSubstr("\"communication_hidden\":"));
}

// Each takes the GPU of its number. Emulated ones are of two processes, between which the emulation has no NCCL.
TEST_F(TcpRanksTest, TwoProcessesTrainOnGpus) {
  if (usable_gpus() == 0) GTEST_SKIP() << "no GPU";
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.optimizer.epsilon = 1e-3;
  config_.train.steps = 3;
  config_.data.valid_source = config_.data.valid_target = {};
  run_to_the_end("one");
  config_.train.device = "cuda";
  const std::string said = train_to_the_end("two");
  EXPECT_EQ(count_of(said, "gradients go "), 1u) << said;
  ASSERT_NO_FATAL_FAILURE(expect_models_near("one", "two", 1e-4));
}

// With dropout, which differs between ranks. What carries the messages does not matter.
TEST_F(TcpRanksTest, TrainAsUnderMpiToTheBit) {
  if (!has_several_ranks()) GTEST_SKIP() << "there is no MPI";
  config_.train.deterministic_reduction = true;
  train_to_the_end("tcp");
  run_to_the_end("mpi", false, 2);
  expect_the_same("tcp", "mpi", 2);
}

TEST_F(TcpRanksTest, BenchReduceTimesSums) {
  const auto both = on_both(attune_command({"bench", "reduce", "--bytes", "4,4096", "--rounds", "2", "--json"}));
  RunningCommand first(both[0], kOptions), second(both[1], kOptions);
  const CommandResult one = first.wait(), two = second.wait();
  ASSERT_EQ(one.status, 0) << one.errors;
  EXPECT_EQ(two.status, 0) << two.errors;
  EXPECT_EQ(two.output, "");
  const Json json = Json::parse(one.output);
  EXPECT_EQ(json.at("network"), "TCP");
  ASSERT_EQ(json.at("results").size(), 2u);
  for (const Json& row : json.at("results")) {
    EXPECT_EQ(row.at("way"), "fixed");
    EXPECT_GT(row.at("mb_per_s").get<double>(), 0);
  }
}

TEST_F(TcpRanksTest, AKilledRankEndsTheOtherAndResumeGoesOn) {
  config_.train.steps = kEndless;
  const auto both = commands("killed");
  RunningCommand first(both[0], kOptions), second(both[1], kOptions);
  ASSERT_TRUE(first.wait_for_error_text("step 22 "));
  second.send(SIGKILL);
  const CommandResult one = first.wait();
  EXPECT_EQ(second.wait().signal, SIGKILL);
  EXPECT_FALSE(one.timed_out);
  EXPECT_EQ(one.status, 1);
  EXPECT_THAT(one.errors, HasSubstr("attune: rank 0: rank 1 has left the run: "));
  EXPECT_FALSE(fs::exists(folder_ / "killed" / "model"));
  expect_goes_on("killed", one.errors);
}

TEST_F(TcpRanksTest, SigtermAtOneRankStopsBothAfterTheSameStep) {
  config_.train.steps = kEndless;
  config_.train.checkpoint_every = kEndless;  // so that there is a checkpoint only because it was stopped
  const auto both = commands("stopped");
  RunningCommand first(both[0], kOptions), second(both[1], kOptions);
  ASSERT_TRUE(first.wait_for_error_text("step 12 "));
  second.send(SIGTERM);
  const CommandResult one = first.wait(), two = second.wait();
  EXPECT_FALSE(one.timed_out);
  EXPECT_EQ(two.status, 128 + SIGTERM) << two.errors;
  EXPECT_NE(one.status, 0);
  EXPECT_THAT(one.errors, HasSubstr("stopped on request; --resume goes on"));
  expect_goes_on("stopped", one.errors);
}

TEST_F(TcpRanksTest, AnErrorOfOneRankEndsTheOther) {
  auto both = commands("run");
  both[1].insert(both[1].end(), {"--set", "train.threads=5000"});
  RunningCommand first(both[0], kOptions), second(both[1], kOptions);
  const CommandResult one = first.wait(), two = second.wait();
  EXPECT_EQ(one.status, 1);
  EXPECT_EQ(two.status, 1);
  EXPECT_THAT(two.errors, AllOf(HasSubstr("attune: rank 1: "), HasSubstr("train.threads = 5000")));
  EXPECT_THAT(one.errors, HasSubstr("rank 1 has left the run"));
}

TEST_F(TcpRanksTest, AVariableThatIsWrongIsNamed) {
  std::vector<std::string> words = commands("run")[1];
  *std::ranges::find(words, "RANK=1") = "RANK=2";
  EXPECT_THAT(refusal(run_command(words, kOptions)), HasSubstr("environment RANK = \"2\": needs a number from 0 to 1"));
}

}  // namespace
}  // namespace attune
