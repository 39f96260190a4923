// Training on a GPU, real or emulated, beside training on the CPU.

#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/tensor/device.h"
#include "tests/train/reverse_training.h"

namespace attune {
namespace {

class DeviceTraining : public ReverseTraining {
 protected:
  void SetUp() override {
    try {
      Device::named("cuda");
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    config_.train.log_every = 1;
    config_.train.checkpoint_every = 2;
    config_.train.valid_every = 4;
    config_.train.valid_sentences = 3;
  }

  // The losses of the steps up to `last`, on a device; goes on with what is in the folder.
  std::vector<double> train_on(const std::string& device, int64_t last, const std::string& name, bool resume) {
    config_.train.device = device;
    config_.train.steps = last;
    std::vector<double> losses;
    for (const StepReport& step : train(config_, folder_ / name, resume).seen.steps) losses.push_back(step.loss);
    return losses;
  }
};

TEST_F(DeviceTraining, ARunGoesOnOnAnotherDevice) {
  const std::vector<double> expected = train_on("cpu", 6, "cpu", false);
  ASSERT_EQ(expected.size(), 6u);
  std::vector<double> losses;
  for (const auto& [device, last] : {std::pair{"cpu", 2}, {"cuda", 4}, {"cpu", 6}}) {
    const std::vector<double> part = train_on(device, last, "mixed", !losses.empty());
    losses.insert(losses.end(), part.begin(), part.end());
  }
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], 1e-3 * expected[i]) << "step " << i + 1;
}

TEST_F(DeviceTraining, LossesAreThoseOfTheCpuAlsoWithAccumulationAndClipping) {
  config_.train.accumulate = 2;
  config_.train.moving_average = 0.9;
  config_.optimizer = {.kind = OptimizerKind::adamw, .weight_decay = 0.1, .clip_norm = 0.5};
  const std::vector<double> expected = train_on("cpu", 4, "cpu", false), found = train_on("cuda", 4, "cuda", false);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3 * expected[i]) << "step " << i + 1;
}

}  // namespace
}  // namespace attune
