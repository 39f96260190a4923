#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

struct SchedulerOptions {
  /// What the caches of all requests may take together, in bytes. A request is admitted when the most that it can come
  /// to need is free. 0: three quarters of the machine's memory.
  int64_t cache_bytes = 0;
};

}  // namespace attune
