// What a resumed run does after its best model so far is gone; how it says so is in resume_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "tests/train/reverse_training.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ForgottenBestTest : public ReverseTraining {};

TEST_F(ForgottenBestTest, ABestModelThatIsMeasuredAnewAtTheSameStepIsThatOfTheCheckpoint) {
  config_.train.steps = 10;
  config_.train.valid_every = 5;
  config_.train.best_metric = ValidationMetric::loss;
  train(config_, folder_ / "run");
  const fs::path checkpoint = checkpoint_file(folder_ / "run", 10);
  change_state(checkpoint, [](Json& state) {  // the earlier validation was the better one
    state["training"]["best_step"] = 5;
    state["training"]["best_value"] = 1e-3;
  });
  fs::remove_all(folder_ / "run" / "best");
  const TrainedRun again = train(config_, folder_ / "run", true);
  ASSERT_EQ(again.seen.validations.size(), 1u);
  EXPECT_EQ(again.seen.validations[0].step, 10);
  const Json training = state_of(checkpoint).at("training");
  EXPECT_EQ(training.at("best_step"), 10);
  EXPECT_EQ(training.at("best_value").get<double>(), again.seen.validations[0].loss.loss);
  EXPECT_TRUE(train(config_, folder_ / "run", true).seen.validations.empty()) << "there is nothing left to do";

  // Also that there is none any more.
  config_.data.valid_source = config_.data.valid_target = {};
  EXPECT_THAT(train(config_, folder_ / "run", true).seen.messages,
              ElementsAre(HasSubstr("is forgotten: the text for validation changed")));
  EXPECT_EQ(state_of(checkpoint).at("training").at("best_step"), -1);
  EXPECT_TRUE(train(config_, folder_ / "run", true).seen.messages.empty()) << "it is said once";
}

TEST_F(ForgottenBestTest, TheStepThatIsResumedIsMeasuredAnewAlsoWhereItIsNotDue) {
  config_.train.steps = 7;
  config_.train.valid_every = 5;
  train(config_, folder_ / "run");
  fs::remove_all(folder_ / "run" / "best");
  config_.train.steps = 12;
  std::vector<int64_t> steps;
  for (const ValidationReport& report : train(config_, folder_ / "run", true).seen.validations)
    steps.push_back(report.step);
  EXPECT_THAT(steps, ElementsAre(7, 10, 12));
  std::vector<int64_t> logged;
  for (const std::string& line : metrics_of(folder_ / "run"))
    if (const Json json = Json::parse(line); json.contains("valid_loss")) logged.push_back(json.at("step"));
  EXPECT_THAT(logged, ElementsAre(5, 7, 10, 12));
}

}  // namespace
}  // namespace attune
