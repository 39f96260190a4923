#include "attune/base/deadline.h"

#include "attune/base/fail.h"

namespace attune {

std::chrono::steady_clock::time_point deadline_after(double seconds, std::string_view name) {
  using Clock = std::chrono::steady_clock;
  constexpr double kMost = 1e9;
  if (!(seconds > 0 && seconds <= kMost))
    fail<ConfigError>("{}: is {}, needs a number of seconds above 0 and at most {}", name, seconds, kMost);
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace attune
