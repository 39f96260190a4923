#pragma once
// Waiting for what another process or processor does, where nothing wakes a thread when it is done.

#include <algorithm>
#include <chrono>
#include <thread>

namespace attune {

/// What a thread does between two looks. Pauses are short at first, so that little time is lost behind what is done
/// soon, and grow with the time waited so far, which leaves the core to others: about a sixteenth of it, at most
/// kLongest.
///   for (Patience patience; !done(); patience.pause()) {}
class Patience {
 public:
  static constexpr std::chrono::microseconds kLongest{500};

  void pause() const {
    const auto waited = Clock::now() - begin_;
    if (waited < std::chrono::microseconds(50)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 16, std::chrono::microseconds(10), kLongest));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace attune
