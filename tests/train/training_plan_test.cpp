#include "attune/train/training_plan.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(TrainingPlan, CountsTheStepsOfWholeEpochs) {
  EXPECT_EQ(total_steps({.steps = 100, .epochs = 0}, {}, 7), 100);
  EXPECT_EQ(total_steps({.steps = 0, .epochs = 3, .accumulate = 2}, {}, 7), 12);
  EXPECT_EQ(total_steps({.steps = 10, .epochs = 3, .accumulate = 2}, {}, 7), 10);
  EXPECT_EQ(total_steps({.steps = 0, .epochs = 3, .accumulate = 2}, {.step = 5, .epoch = 1, .batch = 2}, 7), 12);
  EXPECT_EQ(total_steps({.steps = 0, .epochs = 1}, {.step = 14, .epoch = 2}, 7), 14);
}

// So many epochs are meant as no limit.
TEST(TrainingPlan, MoreStepsThanANumberHoldsAreManySteps) {
  constexpr int64_t kMany = int64_t{1} << 40;
  for (const int64_t batches : {int64_t{1} << 24, int64_t{3} << 30, kMany})
    EXPECT_GE(total_steps({.steps = 0, .epochs = kMany}, {.step = 5, .batch = 5}, batches), kMany) << batches;
  EXPECT_EQ(total_steps({.steps = 9, .epochs = kMany}, {}, kMany), 9);
}

}  // namespace
}  // namespace attune
