#include "attune/train/progress.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace attune {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

int columns_of(const std::string& text) {
  int columns = 0;
  for (const char c : text) columns += (c & 0xC0) != 0x80;
  return columns;
}

ProgressState training() {
  return {.done = 430,
          .total = 1000,
          .seconds = 62.7,
          .rate = 12345,
          .unit = "tok",
          .fields = {{"loss", "2.345"}, {"lr", "3e-4"}}};
}

TEST(Progress, FormatsDurations) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(7.99), "0:07");
  EXPECT_EQ(format_duration(83), "1:23");
  EXPECT_EQ(format_duration(3599.9), "59:59");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 3:04:05");
  for (const double none : {-1.0, std::nan(""), infinity, 1e300}) EXPECT_EQ(format_duration(none), "-:--");
}

TEST(Progress, FormatsCounts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(0.01234), "0.0123");
  EXPECT_EQ(format_count(12.345), "12.3");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(999.4), "999");
  EXPECT_EQ(format_count(999.6), "1.00k");
  EXPECT_EQ(format_count(1000), "1.00k");
  EXPECT_EQ(format_count(9999), "10.0k");
  EXPECT_EQ(format_count(12345), "12.3k");
  EXPECT_EQ(format_count(99960), "100k");
  EXPECT_EQ(format_count(999600), "1.00M");
  EXPECT_EQ(format_count(-4.56e9), "-4.56G");
  EXPECT_EQ(format_count(7.89e12), "7.89T");
  EXPECT_EQ(format_count(5e16), "50000T");
  EXPECT_EQ(format_count(std::nan("")), "nan");
  EXPECT_EQ(format_count(infinity), "inf");
}

TEST(Progress, FillsTheLine) {
  const std::string text = "  43%  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left";
  EXPECT_EQ(format_progress(training(), 80), "|████████████                |" + text);
  EXPECT_EQ(columns_of(format_progress(training(), 80)), 80);
  EXPECT_EQ(columns_of(format_progress(training(), 200)), 42 + columns_of(text));
}

TEST(Progress, LeavesOutWhatDoesNotFit) {
  const auto at = [](int columns) { return format_progress(training(), columns); };
  EXPECT_EQ(at(57), "|██▏  |  43%  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  EXPECT_EQ(at(56), "43%  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  EXPECT_EQ(at(48), "43%  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  EXPECT_EQ(at(47), "43%  loss 2.345  12.3k tok/s  1:23 left");
  EXPECT_EQ(at(38), "|███    |  43%  12.3k tok/s  1:23 left");
  EXPECT_EQ(at(26), "|███▍    |  43%  1:23 left");
  EXPECT_EQ(at(12), "|██▏  |  43%");
  EXPECT_EQ(at(2), "43");
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(at(-5), "");
}

TEST(Progress, IsFullOnlyAtTheEnd) {
  ProgressState state{.done = 999999, .total = 1000000, .seconds = 10};
  EXPECT_EQ(format_progress(state, 25), "|██████▉|  99%  0:00 left");
  state.done = state.total;
  EXPECT_EQ(format_progress(state, 20), "|███████| 100%  0:10");
  state.done = 2 * state.total;
  EXPECT_EQ(format_progress(state, 20), "|███████| 100%  0:10");
  state.done = 0;  // nothing to tell the time left from
  EXPECT_EQ(format_progress(state, 12), "|     |   0%");
}

TEST(Progress, AResumedRunTellsTimeFromItsOwnSteps) {
  EXPECT_EQ(format_progress({.done = 900, .total = 1000, .seconds = 10, .start = 800}, 16), "90%  0:10 left");
}

TEST(Progress, ALimitInTimeEndsTheWorkWhereItIsNearer) {
  ProgressState state{.name = "step", .done = 100, .total = 1000, .seconds = 10, .time_limit = 40};
  EXPECT_EQ(format_progress_line(state), "step 100 of 1000  0:30 left");
  EXPECT_EQ(format_progress(state, 26), "25%  step 100  0:30 left");
  state.earlier_seconds = 20;  // of a resumed run
  EXPECT_EQ(format_progress(state, 26), "75%  step 100  0:10 left");
  state.time_limit = 4000;
  EXPECT_EQ(format_progress(state, 26), "10%  step 100  1:30 left");
  state.time_limit = 30;
  EXPECT_EQ(format_progress(state, 26), "100%  step 100  0:10");
}

TEST(Progress, ALimitInTimeAloneHasABar) {
  const ProgressState state{.name = "step", .done = 7, .seconds = 10, .time_limit = 40};
  EXPECT_EQ(format_progress(state, 38), "|███         |  25%  step 7  0:30 left");
  EXPECT_EQ(format_progress_line(state), "step 7  0:30 left");
}

TEST(Progress, WithoutATotalShowsTheCount) {
  const ProgressState state{.done = 430, .seconds = 62, .rate = 6.93, .unit = "lines"};
  EXPECT_EQ(format_progress(state, 80), "430  6.93 lines/s  1:02");
  EXPECT_EQ(format_progress_line(state), "430  6.93 lines/s  1:02");
}

TEST(Progress, ALogLineHasNoBar) {
  EXPECT_EQ(format_progress_line(training()), "430/1000  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  ProgressState steps = training();
  steps.name = "step";
  EXPECT_EQ(format_progress_line(steps), "step 430 of 1000  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  EXPECT_EQ(format_progress(steps, 60), "43%  step 430  loss 2.345  lr 3e-4  12.3k tok/s  1:23 left");
  steps.total = 0;
  EXPECT_EQ(format_progress_line(steps), "step 430  loss 2.345  lr 3e-4  12.3k tok/s  1:02");
}

RC_GTEST_PROP(Progress, IsNeverWiderThanTheTerminal, (int64_t done, int64_t total, double seconds, double rate)) {
  ProgressState state{.done = done, .total = total, .seconds = seconds, .rate = rate, .unit = "Wörter"};
  const auto fields = *rc::gen::inRange(0, 5);
  for (int i = 0; i < fields; ++i)
    state.fields.emplace_back("größe", std::string(*rc::gen::inRange<std::size_t>(0, 30), 'x'));
  const int columns = *rc::gen::inRange(-1, 150);
  const std::string line = format_progress(state, columns);
  RC_ASSERT(columns_of(line) <= std::max(columns, 0));
  RC_ASSERT(line.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace attune
