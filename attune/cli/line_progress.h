#pragma once

#include <chrono>
#include <cstdint>

#include "attune/base/interrupt.h"
#include "attune/base/json.h"
#include "attune/cli/command.h"
#include "attune/cli/terminal.h"
#include "attune/cli/text_input.h"

namespace attune::cli {

/// A progress bar on standard error that counts lines or the like, if standard error is a terminal; else nothing.
class LineProgress {
 public:
  explicit LineProgress(const char* unit = "lines") { state_.unit = unit; }

  bool shown() const { return terminal_.interactive(); }
  void set_total(int64_t lines) { state_.total = lines; }

  void show(int64_t done) {
    if (!shown()) return;
    state_.done = done;
    state_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    state_.rate = state_.seconds > 0 ? static_cast<double>(done) / state_.seconds : 0;
    terminal_.progress(state_, false);
  }

 private:
  Terminal terminal_;
  ProgressState state_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Shows the progress of a command that works on a file line by line ("": other input), and stops it after Ctrl-C.
class FileProgress {
 public:
  explicit FileProgress(const std::string& file) : shown_(!file.empty() && progress_.shown()) {
    if (shown_) progress_.set_total(count_lines(file));
  }
  /// Shows that `of_piece` lines of the current piece are done. Throws Interrupted after Ctrl-C.
  void show(int64_t of_piece) {
    check_interrupt(&stop_requested());
    if (shown_) progress_.show(done_ + of_piece);
  }
  void finish_piece(size_t lines) { done_ += static_cast<int64_t>(lines); }
  int64_t done() const { return done_; }

 private:
  LineProgress progress_;
  bool shown_;
  int64_t done_ = 0;
};

}  // namespace attune::cli
