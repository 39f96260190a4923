#pragma once

#include <chrono>
#include <cstdint>

#include "attune/cli/terminal.h"

namespace attune::cli {

/// A bar on standard error that counts lines or the like, where standard error is a terminal; else nothing.
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

}  // namespace attune::cli
