#include "attune/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(LearningRate, NoamIsTheFormulaOfThePaper) {
  const ScheduleConfig noam{.kind = ScheduleKind::noam, .warmup_steps = 4000};
  EXPECT_NEAR(learning_rate(noam, 1, 100000, 512), 1.7469281e-7, 1e-13);
  EXPECT_NEAR(learning_rate(noam, 2000, 100000, 512), 3.4938562e-4, 1e-10);
  EXPECT_NEAR(learning_rate(noam, 4000, 100000, 512), 6.9877124e-4, 1e-10);
  EXPECT_NEAR(learning_rate(noam, 100000, 100000, 512), 1.3975425e-4, 1e-10);
  const ScheduleConfig twice{.kind = ScheduleKind::noam, .learning_rate = 2, .warmup_steps = 4000};
  EXPECT_DOUBLE_EQ(learning_rate(twice, 777, 0, 256), 2 * learning_rate(noam, 777, 0, 256));
}

TEST(LearningRate, InverseSquareRootPeaksAtTheEndOfWarmUp) {
  const ScheduleConfig s{.kind = ScheduleKind::inverse_sqrt, .learning_rate = 5e-4, .warmup_steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(s, 1, 0, 64), 5e-6);
  EXPECT_DOUBLE_EQ(learning_rate(s, 50, 0, 64), 2.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 100, 0, 64), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 400, 0, 64), 2.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 400, 0, 64), learning_rate(s, 400, 1000, 1024));  // of neither length nor width
}

TEST(LearningRate, CosineAndLinearEndAtTheFinalRate) {
  ScheduleConfig s{
      .kind = ScheduleKind::cosine, .learning_rate = 1e-2, .warmup_steps = 10, .final_learning_rate = 1e-3};
  EXPECT_DOUBLE_EQ(learning_rate(s, 5, 110, 64), 5e-3);
  EXPECT_DOUBLE_EQ(learning_rate(s, 10, 110, 64), 1e-2);
  EXPECT_NEAR(learning_rate(s, 35, 110, 64), 1e-3 + 9e-3 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(learning_rate(s, 60, 110, 64), 5.5e-3, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 110, 64), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(s, 500, 110, 64), 1e-3);
  s.kind = ScheduleKind::linear;
  EXPECT_DOUBLE_EQ(learning_rate(s, 5, 110, 64), 5e-3);
  EXPECT_NEAR(learning_rate(s, 35, 110, 64), 7.75e-3, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(s, 110, 110, 64), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(s, 500, 110, 64), 1e-3);
}

TEST(LearningRate, ConstantStaysAtItsPeak) {
  const ScheduleConfig s{.kind = ScheduleKind::constant, .learning_rate = 3e-4, .warmup_steps = 3};
  EXPECT_DOUBLE_EQ(learning_rate(s, 1, 0, 64), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 3, 0, 64), 3e-4);
  EXPECT_DOUBLE_EQ(learning_rate(s, 1000000, 0, 64), 3e-4);
  const ScheduleConfig at_once{.kind = ScheduleKind::constant, .learning_rate = 3e-4, .warmup_steps = 0};
  EXPECT_DOUBLE_EQ(learning_rate(at_once, 1, 0, 64), 3e-4);
}

TEST(LearningRate, WithoutWarmUpBeginsAtThePeakOrSaysWhyNot) {
  const auto at_step_1 = [](ScheduleKind kind, int64_t warmup) {
    return learning_rate({.kind = kind, .learning_rate = 1e-3, .warmup_steps = warmup}, 1, 1000000, 64);
  };
  EXPECT_NEAR(at_step_1(ScheduleKind::linear, 0), 1e-3, 1e-8);
  EXPECT_NEAR(at_step_1(ScheduleKind::cosine, 0), 1e-3, 1e-8);
  EXPECT_EQ(at_step_1(ScheduleKind::constant, 0), 1e-3);
  EXPECT_EQ(at_step_1(ScheduleKind::inverse_sqrt, 1), 1e-3);
  // Their decay is measured in warm-ups: with none, every rate would be 0 and nothing would be learnt.
  EXPECT_EQ(message_of<ConfigError>([&] { at_step_1(ScheduleKind::inverse_sqrt, 0); }),
            "warmup_steps = 0: the schedule \"inverse_sqrt\" needs at least 1");
  EXPECT_EQ(message_of<ConfigError>([&] { at_step_1(ScheduleKind::noam, 0); }),
            "warmup_steps = 0: the schedule \"noam\" needs at least 1");
  EXPECT_EQ(message_of<ConfigError>([&] { at_step_1(ScheduleKind::constant, -3); }),
            "warmup_steps = -3: the schedule \"constant\" needs at least 0");
  EXPECT_EQ(message_of<ConfigError>([] { learning_rate({}, 1, 1000, 0); }),
            "d_model = 0: the schedule \"noam\" needs at least 1");
}

TEST(LearningRate, RisesThenFallsWithoutAJump) {
  for (const auto& [kind, name] : EnumNames<ScheduleKind>::values) {
    const ScheduleConfig s{.kind = kind, .warmup_steps = 50};
    const double peak = learning_rate(s, 50, 500, 128);
    for (int64_t step = 1; step < 500; ++step) {
      const double here = learning_rate(s, step, 500, 128), next = learning_rate(s, step + 1, 500, 128);
      EXPECT_GT(here, 0) << name << " " << step;
      EXPECT_LT(std::abs(next - here), 0.021 * peak) << name << " " << step;
      EXPECT_EQ(next > here, step < 50) << name << " " << step;
    }
  }
}

}  // namespace
}  // namespace attune
