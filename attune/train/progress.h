#pragma once
// The progress of long work, as text. attune/cli/terminal.h prints it.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace attune {

struct ProgressState {
  std::string name = {};  // of what is counted, for instance "step"
  int64_t done = 0;
  int64_t total = 0;                                             // 0 or less: unknown
  double seconds = 0;                                            // spent so far
  double rate = 0;                                               // `unit` per second; 0 or less: not shown
  std::string unit = {};                                         // of `rate`, for instance "tok"
  std::vector<std::pair<std::string, std::string>> fields = {};  // for instance {"loss", "2.345"}
  int64_t start = 0;                                             // `done` when `seconds` was 0, as in a resumed run
  double time_limit = 0;       // seconds after which the work ends, whatever is done by then; 0: none
  double earlier_seconds = 0;  // of that limit, spent when `seconds` was 0
};

/// One line for a terminal, at most `columns` wide (every code point counts as one column):
///   |██████████▍             |  43%  loss 2.345  12.3k tok/s  1:23 left
/// What does not fit is left out: first the bar becomes shorter and goes, then the fields from the last, then the rate,
/// the time and the percentage. The work is done at the total or at the time limit, whichever comes first: bar,
/// percentage and time left are by the nearer. With neither there is no bar, the count replaces the percentage, and the
/// time is the time elapsed.
std::string format_progress(const ProgressState& state, int columns);

/// The same for a log, without a bar and of any width: step 430 of 1000  loss 2.345  12.3k tok/s  1:23 left
std::string format_progress_line(const ProgressState& state);

/// Whole seconds that have passed: 0:07, 1:23, 1:02:03, 2d 3:04:05; "-:--" for a number that is no time.
std::string format_duration(double seconds);

/// Three significant digits: 0.0123, 7, 999, 12.3k, 1.00M, 4.56G, 7.89T. Whole numbers below 1000 as they are.
std::string format_count(double count);

}  // namespace attune
