#include "attune/dist/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "attune/base/error.h"
#include "attune/dist/mpi_transport.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The variables of launchers as a test sets them, and as they were afterwards.
class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name); value != nullptr) before_[name] = value;
      ::unsetenv(name);
    }
  }
  ~LaunchTest() override {
    for (const char* name : kNames) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  // What is wrong with the environment when these variables are added to it.
  static std::string problem_with(const std::map<std::string, std::string>& variables) {
    set(variables);
    return message_of<ConfigError>([] { tcp_run_of_environment(); });
  }

 private:
  static constexpr const char* kNames[] = {"RANK",
                                           "WORLD_SIZE",
                                           "MASTER_ADDR",
                                           "MASTER_PORT",
                                           "ATTUNE_MASTER_PORT",
                                           "ATTUNE_RUN_TOKEN",
                                           "ATTUNE_RENDEZVOUS_SECONDS",
                                           "TORCHELASTIC_USE_AGENT_STORE",
                                           "TORCHELASTIC_RUN_ID",
                                           "LOCAL_RANK",
                                           "SLURM_LOCALID",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "SLURM_PROCID",
                                           "SLURM_STEP_NUM_TASKS",
                                           "PMI_RANK",
                                           "PMI_SIZE",
                                           "PMIX_RANK",
                                           "OMPI_COMM_WORLD_SIZE"};
  std::map<std::string, std::string> before_;
};

TEST_F(LaunchTest, ReadsTheVariablesOfTorchrun) {
  EXPECT_FALSE(tcp_run_of_environment().has_value());
  set({{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "10.0.0.1"}});
  const std::optional<TcpRun> run = tcp_run_of_environment();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->rank, 1);
  EXPECT_EQ(run->size, 4);
  EXPECT_EQ(run->address, "10.0.0.1");
  EXPECT_EQ(run->port, 29500);
  EXPECT_EQ(run->token, "");
  EXPECT_EQ(run->seconds, 300);
  set({{"MASTER_PORT", "1234"}, {"ATTUNE_RUN_TOKEN", "secret"}, {"ATTUNE_RENDEZVOUS_SECONDS", "20"}});
  EXPECT_EQ(tcp_run_of_environment()->port, 1234);
  EXPECT_EQ(tcp_run_of_environment()->token, "secret");
  EXPECT_EQ(tcp_run_of_environment()->seconds, 20);
}

// Torchrun's own server has MASTER_PORT.
TEST_F(LaunchTest, LeavesThePortOfTorchrunToIt) {
  set({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1234"}});
  set({{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(tcp_run_of_environment()->port, 1235);
  EXPECT_THAT(problem_with({{"MASTER_PORT", "65535"}}),
              HasSubstr("environment MASTER_PORT = \"65535\": needs a number from 1 to 65534"));
  set({{"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  EXPECT_EQ(tcp_run_of_environment()->port, 65535);
  set({{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"ATTUNE_MASTER_PORT", "777"}});
  EXPECT_EQ(tcp_run_of_environment()->port, 777);
}

TEST_F(LaunchTest, TheRankOfAStepOfSlurmCountsWhereTheUserSaysWhoIsFirst) {
  set({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}});
  EXPECT_FALSE(tcp_run_of_environment().has_value());
  set({{"MASTER_ADDR", "node1"}});
  EXPECT_EQ(tcp_run_of_environment()->rank, 2);
  EXPECT_EQ(tcp_run_of_environment()->size, 3);
  set({{"RANK", "5"}, {"WORLD_SIZE", "8"}});  // of torchrun, which srun has started
  EXPECT_EQ(tcp_run_of_environment()->rank, 5);
  EXPECT_EQ(tcp_run_of_environment()->size, 8);
}

TEST_F(LaunchTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(problem_with({{"WORLD_SIZE", "many"}}),
              HasSubstr("environment WORLD_SIZE = \"many\": needs a number from 1 to 4096"));
  EXPECT_THAT(problem_with({{"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE = \"0\""));
  EXPECT_THAT(problem_with({{"WORLD_SIZE", "4"}}), AllOf(HasSubstr("WORLD_SIZE = 4"), HasSubstr("RANK")));
  EXPECT_THAT(problem_with({{"RANK", ""}}), HasSubstr("needs RANK"));
  EXPECT_THAT(problem_with({{"RANK", "4"}}), HasSubstr("environment RANK = \"4\": needs a number from 0 to 3"));
  EXPECT_THAT(problem_with({{"RANK", "-1"}}), HasSubstr("RANK = \"-1\""));
  EXPECT_THAT(problem_with({{"RANK", "1x"}}), HasSubstr("RANK = \"1x\""));
  EXPECT_THAT(problem_with({{"RANK", "3"}}), HasSubstr("needs MASTER_ADDR"));
  EXPECT_THAT(problem_with({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT = \"70000\""));
  EXPECT_THAT(problem_with({{"ATTUNE_MASTER_PORT", "0"}}), HasSubstr("ATTUNE_MASTER_PORT = \"0\""));
  EXPECT_THAT(problem_with({{"ATTUNE_MASTER_PORT", "1"}, {"ATTUNE_RENDEZVOUS_SECONDS", "0"}}),
              HasSubstr("ATTUNE_RENDEZVOUS_SECONDS = \"0\""));
}

TEST_F(LaunchTest, TheInnermostLauncherSaysTheNumberOnTheMachine) {
  LocalCommunicator alone;
  EXPECT_EQ(local_rank(alone), 0);
  set({{"SLURM_LOCALID", "5"}});
  EXPECT_EQ(local_rank(alone), 0);  // of a batch script, which is no task
  set({{"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_EQ(local_rank(alone), 5);
  set({{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}});
  EXPECT_EQ(local_rank(alone), 3);
  set({{"LOCAL_RANK", "1"}});
  EXPECT_EQ(local_rank(alone), 1);
  set({{"LOCAL_RANK", "one"}});
  EXPECT_EQ(message_of<ConfigError>([&] { local_rank(alone); }),
            "environment LOCAL_RANK = \"one\": needs a number from 0 to 4096");
}

// Also where a variable, of whatever was around them, says the same to all.
TEST_F(LaunchTest, RanksWithoutANumberOfTheirOwnAreCounted) {
  for (const char* number : {"", "0", "2"}) {
    set({{"LOCAL_RANK", number}});
    run_in_process(3, [](Communicator& communicator) { EXPECT_EQ(local_rank(communicator), communicator.rank()); });
  }
}

TEST_F(LaunchTest, OneOfOneIsAlone) {
  set({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(make_communicator()->size(), 1);
  set({{"PMIX_RANK", "3"}, {"TORCHELASTIC_RUN_ID", "none"}});  // torchrun within a job of srun
  EXPECT_TRUE(started_by_mpi());
  EXPECT_EQ(make_communicator()->size(), 1);
}

TEST_F(LaunchTest, SeveralRanksOfTorchrunNeedNoMpi) {
  set({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"PMIX_RANK", "3"}, {"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_THAT(message_of<ConfigError>([] { make_communicator(); }), HasSubstr("needs MASTER_ADDR"));
  if (has_mpi()) return;
  ::unsetenv("TORCHELASTIC_RUN_ID");
  EXPECT_THAT(message_of<ConfigError>([] { make_communicator(); }), HasSubstr("needs MASTER_ADDR"));
  ::unsetenv("WORLD_SIZE");
  EXPECT_THAT(message_of<ConfigError>([] { make_communicator(); }), HasSubstr("built without MPI"));
}

}  // namespace
}  // namespace attune
