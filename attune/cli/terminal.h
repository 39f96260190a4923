#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "attune/train/progress.h"

namespace attune {

/// Writes progress and messages to standard error. On a terminal the last line is a progress bar, which is redrawn, and
/// messages go above it; elsewhere (a file, a pipe, TERM=dumb) everything is plain lines. Any thread may call.
class Terminal {
 public:
  Terminal();
  ~Terminal();  // clears the bar
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool interactive() const { return interactive_; }
  int columns() const;  // the present width; COLUMNS, else 80, where the terminal does not say

  /// Shows how far the work is: redraws the bar at most ten times a second; in a log prints one line, when `log_now`.
  void progress(const ProgressState& state, bool log_now);

  /// Prints `text` and a line break.
  void message(std::string_view text);

  /// Removes the bar: the work is over.
  void clear();

 private:
  const bool interactive_;
  std::mutex mutex_;  // of what follows and of the order of the output
  ProgressState state_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_draw_{};  // the bar is not redrawn before
};

}  // namespace attune
