// Requests to stop a training, and runs that go on from there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "attune/io/checkpoint.h"
#include "tests/train/reverse_training.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StopTest : public ReverseTraining {};

TEST_F(StopTest, AStopRequestEndsWithACheckpoint) {
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  seen.after_step = [&](const StepReport& report) { stop = report.step == 7; };
  const TrainingResult result = Trainer(config_, folder_ / "run", seen, stop).run(false);
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.step, 7);
  ASSERT_EQ(seen.checkpoints.size(), 1);
  EXPECT_EQ(seen.checkpoints[0], checkpoint_file(folder_ / "run", 7));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "model"));
  const TrainedRun rest = train(config_, folder_ / "run", true);
  EXPECT_EQ(rest.seen.start.step, 7);
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "run", 20)), tensors_of(checkpoint_file(folder_ / "whole", 20)));
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

// The checkpoints of two stops are for going on alone: they are not in the mean, and go when the next one is due.
TEST_F(StopTest, AStopLeavesNoTraceInTheMeanOfCheckpoints) {
  config_.train.checkpoint_every = 5;
  config_.train.keep_checkpoints = config_.train.average_checkpoints = 3;
  train(config_, folder_ / "whole");
  for (const int64_t last : {0, 12, 13}) {
    Recorder seen;
    std::atomic<bool> stop{last == 0};
    seen.after_step = [&](const StepReport& report) { stop = report.step == last; };
    EXPECT_EQ(Trainer(config_, folder_ / "run", seen, stop).run(last > 0).step, last);
  }
  train(config_, folder_ / "run", true);
  EXPECT_EQ(tensors_of(folder_ / "run" / "model" / "model.safetensors"),
            tensors_of(folder_ / "whole" / "model" / "model.safetensors"));
  for (const char* run : {"whole", "run"})
    EXPECT_EQ(CheckpointFolder(folder_ / run / "checkpoints", 0).steps(), (std::vector<int64_t>{10, 15, 20})) << run;
}

// The flag rises while the validation translates.
TEST_F(StopTest, AStopDuringAValidationIsNoticedThere) {
  config_.train.valid_every = 10;
  config_.generation.max_length = 200;
  write_reverse_text(folder_, "valid", 4000, 5, 5, 2);
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  std::thread stopper;
  seen.after_step = [&](const StepReport& report) {
    if (report.step != 10) return;
    stopper = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stop = true;
    });
  };
  const TrainingResult result = Trainer(config_, folder_ / "run", seen, stop).run(false);
  stopper.join();
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.step, 10);
  EXPECT_TRUE(seen.validations.empty());
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_FALSE(rest.seen.validations.empty());
  EXPECT_EQ(rest.seen.validations[0].step, 10);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

TEST_F(StopTest, AStopRightBeforeAValidationLosesNothing) {
  config_.train.valid_every = 10;
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  seen.after_step = [&](const StepReport& report) { stop = report.step == 10; };
  Trainer(config_, folder_ / "run", seen, stop).run(false);
  EXPECT_TRUE(seen.validations.empty());
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_EQ(rest.seen.validations.size(), 2);
  EXPECT_EQ(rest.seen.validations[0].step, 10);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

TEST_F(StopTest, AStopAtTheLastStepIsLoggedOnce) {
  config_.data.valid_source = config_.data.valid_target = {};
  config_.train.steps = 12;
  std::atomic<bool> stop{false};
  Recorder seen;
  seen.after_step = [&](const StepReport& report) { stop = report.step == 12; };
  EXPECT_EQ(Trainer(config_, folder_ / "run", seen, stop).run(false).reason, StopReason::requested);
  train(config_, folder_ / "run", true);
  const std::vector<std::string> metrics = metrics_of(folder_ / "run");
  EXPECT_THAT(metrics.back(), HasSubstr("{\"step\":12,\"loss\":"));
  train(config_, folder_ / "run", true);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics);
}

}  // namespace
}  // namespace attune
