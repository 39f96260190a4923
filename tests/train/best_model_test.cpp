#include "attune/train/best_model.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"

namespace attune {
namespace {

// A validation at the next step.
bool is_best(TrainingState& state, ValidationMetric metric, double value) {
  ++state.step;
  ValidationReport report;
  report.loss.loss = report.loss.accuracy = value;
  return take_if_best(report, metric, state);
}

// The same, with a loss beside the accuracy.
bool is_best_accuracy(TrainingState& state, double accuracy, double loss) {
  ++state.step;
  ValidationReport report;
  report.loss.loss = loss;
  report.loss.accuracy = accuracy;
  return take_if_best(report, ValidationMetric::accuracy, state);
}

TEST(BestModel, OfEqualAccuraciesTheLastIsTakenAndNoneIsAnImprovement) {
  TrainingState state;
  for (const double accuracy : {0.9, 0.95, 0.95, 0.95})
    EXPECT_TRUE(is_best(state, ValidationMetric::accuracy, accuracy)) << accuracy;
  EXPECT_EQ(state.best_step, 4);
  EXPECT_EQ(state.without_improvement, 2);
  EXPECT_FALSE(is_best(state, ValidationMetric::accuracy, 0.94));
  EXPECT_EQ(state.without_improvement, 3);
  EXPECT_TRUE(is_best(state, ValidationMetric::accuracy, 0.96));
  EXPECT_EQ(state.without_improvement, 0);
}

TEST(BestModel, WhatIsStillZeroIsNotCountedAgainstTheRun) {
  TrainingState state;
  for (const double accuracy : {0.0, 0.0, 0.0}) EXPECT_TRUE(is_best(state, ValidationMetric::accuracy, accuracy));
  EXPECT_EQ(state.without_improvement, 0);
  EXPECT_TRUE(is_best(state, ValidationMetric::accuracy, 0.1));
  EXPECT_FALSE(is_best(state, ValidationMetric::accuracy, 0));
  EXPECT_EQ(state.without_improvement, 1) << "it was better before";
}

TEST(BestModel, AnEqualAccuracyAtTheLeastLossIsNotCountedAgainstTheRun) {
  TrainingState state;
  const auto counted = [&](double accuracy, double loss) {
    is_best_accuracy(state, accuracy, loss);
    return state.without_improvement;
  };
  EXPECT_EQ(counted(0.5, 3), 0);
  EXPECT_EQ(counted(0.5, 2), 0);
  EXPECT_EQ(counted(0.5, 2.5), 1) << "less than the first, but more than the least";
  EXPECT_EQ(counted(0.5, 2), 2) << "no less than the least";
  EXPECT_EQ(counted(0.5, 1.5), 2) << "is not counted";
  EXPECT_EQ(counted(0.4, 1), 3) << "a lower accuracy counts at any loss";
  EXPECT_EQ(counted(0.5, 1.2), 4) << "the loss was 1 already";
  EXPECT_EQ(counted(0.6, 9), 0);
  EXPECT_EQ(state.least_loss, 1);
}

TEST(BestModel, OfEqualLossesTheFirstIsTaken) {
  TrainingState state;
  EXPECT_TRUE(is_best(state, ValidationMetric::loss, 2));
  EXPECT_FALSE(is_best(state, ValidationMetric::loss, 2));
  EXPECT_TRUE(is_best(state, ValidationMetric::loss, 1));
  EXPECT_EQ(state.best_step, 3);
}

TEST(BestModel, WhereTheTextsOfAClassifierStandIsAConditionOfItsFigures) {
  const RunConfig config = default_config(Architecture::encoder_classifier);
  const Json before = validation_conditions(config);
  for (const char* field : {"data.format", "data.label_field", "data.text_field", "data.second_text_field"})
    EXPECT_TRUE(before.contains(field)) << field;
  RunConfig other = config;
  other.data.text_field = "review";
  EXPECT_NE(validation_conditions(other), before);
  for (const Architecture architecture : {Architecture::encoder_decoder, Architecture::decoder_lm})
    EXPECT_FALSE(validation_conditions(default_config(architecture)).contains("data.text_field"));
}

TEST(BestModel, WhatIsNoNumberIsAnError) {
  TrainingState state;
  EXPECT_EQ(message_of<NumericError>(
                [&] { is_best(state, ValidationMetric::loss, std::numeric_limits<double>::quiet_NaN()); }),
            "step 1: the validation's loss is nan");
  EXPECT_EQ(state.best_step, -1);
}

}  // namespace
}  // namespace attune
