#include "attune/metrics/classification_scores.h"

#include <gtest/gtest.h>

#include "attune/base/random.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using Labels = std::vector<int32_t>;

TEST(ClassificationScores, OfAnExampleDoneByHand) {
  // sklearn.metrics.classification_report([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2], zero_division=0)
  const ClassificationScores s = classification_scores(Labels{0, 0, 1, 1, 2, 2}, Labels{0, 0, 0, 1, 1, 2}, 3);
  EXPECT_DOUBLE_EQ(s.accuracy, 4.0 / 6);
  EXPECT_DOUBLE_EQ(s.labels[0].precision, 1);
  EXPECT_DOUBLE_EQ(s.labels[0].recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.labels[0].f1, 0.8);
  EXPECT_DOUBLE_EQ(s.labels[1].f1, 0.5);
  EXPECT_DOUBLE_EQ(s.labels[2].precision, 0.5);
  EXPECT_DOUBLE_EQ(s.labels[2].recall, 1);
  EXPECT_DOUBLE_EQ(s.labels[2].f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(s.macro_f1, (0.8 + 0.5 + 2.0 / 3) / 3);
  EXPECT_EQ(s.labels[1].support, 2);
  EXPECT_EQ(s.confusion, (std::vector<std::vector<int64_t>>{{2, 1, 0}, {0, 1, 1}, {0, 0, 1}}));
}

TEST(ClassificationScores, WhatCannotBeDividedIsZero) {
  // Label 1 is never predicted, label 2 has no text, label 3 has neither and does not count.
  const ClassificationScores s = classification_scores(Labels{0, 0, 2}, Labels{0, 1, 1}, 4);
  EXPECT_DOUBLE_EQ(s.labels[0].f1, 2.0 / 3);
  EXPECT_EQ(s.labels[1].precision, 0);
  EXPECT_EQ(s.labels[1].f1, 0);
  EXPECT_EQ(s.labels[2].recall, 0);
  EXPECT_EQ(s.labels[3].f1, 0);
  EXPECT_DOUBLE_EQ(s.macro_f1, 2.0 / 3 / 3);
}

TEST(ClassificationScores, TheOrderOfTheTextsDoesNotMatter) {
  Random random(3);
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int i = 0; i < 200; ++i)
    pairs.emplace_back(static_cast<int32_t>(random.below(5)), static_cast<int32_t>(random.below(5)));
  const auto scores = [&] {
    Labels predictions, references;
    for (const auto& [p, r] : pairs) predictions.push_back(p), references.push_back(r);
    return classification_scores(predictions, references, 5);
  };
  const ClassificationScores before = scores();
  random.shuffle(pairs);
  const ClassificationScores after = scores();
  EXPECT_EQ(before.confusion, after.confusion);
  EXPECT_EQ(before.macro_f1, after.macro_f1);
  for (auto& [p, r] : pairs) p = r;
  EXPECT_EQ(scores().accuracy, 1);
  EXPECT_EQ(scores().macro_f1, 1);
}

TEST(ClassificationScores, RefusesWhatIsNoLabel) {
  EXPECT_EQ(message_of<DataError>([] {
              classification_scores(Labels{0, 2}, Labels{0, 0}, 2);
            }),
            "text 2: label 2 is outside of the 2");
  EXPECT_THROW(classification_scores(Labels{0}, Labels{-1}, 2), DataError);
  EXPECT_THROW(classification_scores(Labels{0}, Labels{0, 1}, 2), DataError);
  EXPECT_THROW(classification_scores(Labels{}, Labels{}, 2), DataError);
  EXPECT_EQ(message_of<DataError>([] { classification_scores(Labels{0}, Labels{0}, -1); }),
            "classification_scores: there are -1 labels, expected 1 to 2^31 - 1");
}

// A matrix of the labels' square would take gigabytes.
TEST(ClassificationScores, ManyLabelsHaveNoMatrix) {
  constexpr int64_t kLabels = 1'000'000;
  const std::vector<int32_t> references = {0, 999'999, 5, 5}, predictions = {0, 999'999, 5, 6};
  const ClassificationScores many = classification_scores(predictions, references, kLabels);
  EXPECT_TRUE(many.confusion.empty());
  const ClassificationScores few =
      classification_scores(std::vector<int32_t>{0, 9, 5, 6}, std::vector<int32_t>{0, 9, 5, 5}, 10);
  EXPECT_EQ(few.confusion.size(), 10u);
  EXPECT_EQ(many.accuracy, few.accuracy);
  EXPECT_EQ(many.macro_f1, few.macro_f1);
  EXPECT_EQ(many.labels[5].f1, few.labels[5].f1);
  EXPECT_EQ(many.labels[999'999].support, 1);
}

}  // namespace
}  // namespace attune
