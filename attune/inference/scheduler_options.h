#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

struct SchedulerOptions {
  /// The most bytes that the caches of all requests may take together. A request is admitted when the most that it can
  /// come to need is free. 0: three quarters of the machine's memory.
  int64_t cache_bytes = 0;
};

}  // namespace attune
