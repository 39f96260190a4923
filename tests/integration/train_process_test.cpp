// attune train as its users run it: stopped by Ctrl-C, killed, and resumed. What comes out in the end has to be, to the
// bit, what a run without interruption makes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/integration/cli_fixture.h"
#include "tests/integration/train_fixture.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class TrainProcessTest : public TrainFixture {
 protected:
  TrainProcessTest() {
    config_.train = {.steps = 120,
                     .batch_tokens = 64,
                     .log_every = 1,  // a line a step: what is not read yet, at most 50 of them, holds the run back
                     .valid_every = 40,
                     .checkpoint_every = 5,
                     .threads = 1};
  }

  // With at least 120 steps, a signal sent at step 12, and one right after resuming, come before the end.
  static CommandOptions held_back() {
    CommandOptions options = kOptions;
    options.hold_back = true;
    return options;
  }

  size_t checkpoints(const std::string& run) const {
    size_t count = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / run / "checkpoints", none))
      count += entry.path().extension() == ".safetensors" ? 1 : 0;
    return count;
  }
};

TEST_F(TrainProcessTest, CtrlCSavesAndResumeGoesOnBitForBit) {
  config_.train.steps = 200;  // it is stopped three times
  run_to_the_end("whole");
  config_.train.checkpoint_every = 1000;  // so that there is a checkpoint only because it was stopped
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const bool again = signal != SIGINT;
    RunningCommand running(command("stopped", again), held_back());
    ASSERT_TRUE(running.wait_for_error_text(again ? "going on from step " : "step 12 "));
    running.send(signal);
    const CommandResult result = running.wait();
    EXPECT_EQ(result.status, 128 + signal);
    EXPECT_EQ(result.signal, 0);
    EXPECT_THAT(result.errors, HasSubstr("stopped on request; --resume goes on: step "));
    EXPECT_FALSE(fs::exists(folder_ / "stopped" / "model"));
    EXPECT_GE(checkpoints("stopped"), 1u);
  }
  EXPECT_THAT(run_to_the_end("stopped", true).errors, HasSubstr("going on from step "));
  expect_the_same("stopped", "whole");
}

// Whether a thread of /proc/PROCESS/task blocks the signal.
bool blocks(const fs::path& thread, int signal) {
  std::ifstream status(thread / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

// A handler that interrupts the code that the matrix library generates would write its frame over other memory.
TEST_F(TrainProcessTest, SignalsComeToAThreadThatDoesNotCompute) {
  config_.train.threads = 2;
  RunningCommand running(command("run"), held_back());
  ASSERT_TRUE(running.wait_for_error_text("step 12 "));
  const fs::path process = fs::path("/proc") / std::to_string(running.process());
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_TRUE(blocks(process, signal)) << "the main thread";
    size_t threads = 0, blocking = 0;
    for (const auto& thread : fs::directory_iterator(process / "task")) {
      ++threads;
      blocking += blocks(thread.path(), signal) ? 1 : 0;
    }
    EXPECT_EQ(blocking + 1, threads) << "one thread takes them";
  }
  running.send(SIGTERM);
  EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(TrainProcessTest, AKilledRunGoesOnBitForBit) {
  run_to_the_end("whole");
  for (const char* place : {"step 12 ", "going on from step "}) {
    RunningCommand running(command("killed", true), held_back());
    ASSERT_TRUE(running.wait_for_error_text(place));
    running.send(SIGKILL);
    EXPECT_EQ(running.wait().signal, SIGKILL);
    EXPECT_GE(checkpoints("killed"), 2u);
  }
  EXPECT_THAT(run_to_the_end("killed", true).errors, HasSubstr("going on from step "));
  expect_the_same("killed", "whole");
}

TEST_F(TrainProcessTest, AFolderIsForOneRunAtATime) {
  RunningCommand running(command("run"), held_back());
  ASSERT_TRUE(running.wait_for_error_text("step 12 "));
  for (const bool resume : {false, true})
    EXPECT_THAT(refusal(run_command(command("run", resume))),
                AllOf(HasSubstr((folder_ / "run").string()), HasSubstr("in use by process ")));
  running.send(SIGKILL);
  running.wait();
  run_to_the_end("run", true);
  run_to_the_end("whole");
  expect_the_same("run", "whole");
}

TEST_F(TrainProcessTest, AStopIsNoticedThoughNobodyReadsWhatTheRunSays) {
  config_.train.checkpoint_every = 1000;
  RunningCommand running(command("run"), held_back());
  ASSERT_TRUE(running.wait_for_error_text("step 12 "));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // until it waits for its reader
  running.send(SIGTERM);
  EXPECT_TRUE(running.ends_within(std::chrono::seconds(60)));
  EXPECT_EQ(running.wait().status, 128 + SIGTERM);
  EXPECT_EQ(checkpoints("run"), 1);
}

TEST_F(TrainProcessTest, WhatAKilledRunLeftIsRemovedWhenItIsResumed) {
  config_.train.steps = 4;
  run_to_the_end("run");
  const std::vector<fs::path> left = {"config.toml.0123456789abcdef.tmp", "best/model.safetensors.0123456789abcdef.tmp",
                                      "checkpoints/step-00000004.safetensors.0123456789abcdef.tmp"};
  for (const fs::path& name : left) {
    fs::create_directories((folder_ / "run" / name).parent_path());
    write_file(folder_ / "run" / name, "half");
  }
  run_to_the_end("run", true);
  for (const fs::path& name : left) EXPECT_FALSE(fs::exists(folder_ / "run" / name)) << name;
}

// A job in the background of a script: its Ctrl-C is meant for others.
TEST_F(TrainProcessTest, AnIgnoredCtrlCStaysIgnored) {
  config_.train.steps = 40;
  std::vector<std::string> words = {"bash", "-c", "trap '' INT; exec \"$@\"", "bash"};
  for (const std::string& word : command("run")) words.push_back(word);
  RunningCommand running(words, held_back());
  ASSERT_TRUE(running.wait_for_error_text("step "));
  running.send(SIGINT);
  const CommandResult result = running.wait();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model"));
}

TEST_F(TrainProcessTest, ASecondCtrlCEndsAtOnce) {
  write_reverse_text(folder_, "train", 20000, 5, 9, 1);
  config_.model = {.d_model = 64, .heads = 4, .layers = 2, .d_ff = 256};
  config_.train.accumulate = 100000;  // an epoch is one step, of seconds
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::string name = "run" + std::to_string(attempt);
    RunningCommand running(command(name));
    ASSERT_TRUE(running.wait_for_error_text("batches an epoch"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100 << attempt));
    while (running.running()) {  // two that come before the first was received count as one
      running.send(SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const CommandResult result = running.wait();
    EXPECT_EQ(result.status, 130);
    if (result.errors.find("stopped on request") != std::string::npos) continue;  // it had not begun the step yet
    EXPECT_EQ(checkpoints(name), 0u);
    EXPECT_THAT(result.errors, Not(HasSubstr("step 1 ")));
    return;
  }
  FAIL() << "the first Ctrl-C always came before the first step";
}

TEST_F(TrainProcessTest, TheRunsOwnConfigurationIsEnoughToResume) {
  config_.train.steps = 4;
  run_to_the_end("run");
  const std::string out = (folder_ / "run").string();
  const CommandResult more =
      run_attune({"train", "--out", out, "--resume", "--set", "train.steps=6", "--set", "optimizer.beta_2=0.999"});
  EXPECT_EQ(more.status, 0) << more.errors;
  EXPECT_THAT(more.errors, HasSubstr("optimizer.beta_2 changed from 0.98 to 0.999 in this part of the run\n"));
  EXPECT_THAT(refusal(run_attune({"train", "--out", out, "--resume", "--set", "data.vocab_size=99"})),
              HasSubstr("data.vocab_size = 99: the run to be resumed was begun with 8000 and keeps its tokenizers"));
  EXPECT_THAT(refusal(run_command(command("run"))), HasSubstr("use --resume to go on"));
}

}  // namespace
}  // namespace attune
