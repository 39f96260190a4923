#pragma once
// Waiting for what another process or processor does, where nothing wakes a thread when it is done.

#include <algorithm>
#include <chrono>
#include <thread>

namespace attune {

/// Pauses of a thread that looks again and again whether something is done. They are short at first, so that a short
/// wait ends soon. They grow to a sixteenth of the time waited so far, at most kLongest, so that a long wait leaves the
/// core to others.
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
