#pragma once
// Waiting for other threads.

#include <chrono>
#include <thread>

namespace attune {

/// Waits until `condition` holds; false where it does not within so many seconds.
template <class Condition>
bool becomes(Condition&& condition, double seconds = 20) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace attune
