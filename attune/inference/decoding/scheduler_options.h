#pragma once

#include <cstdint>

#include "attune/base/execution.h"

namespace [[gnu::visibility("default")]] attune {

struct SchedulerOptions {
  /// The most bytes that the caches of all requests may take together. A request is admitted when the most that it can
  /// come to need is free. 0: three quarters of process_memory_limit().
  int64_t cache_bytes = 0;
  /// With bfloat16, matrix products round activations to it too, which is faster on processors with instructions for
  /// it. Models are loaded with weights in bfloat16 then.
  ProductPrecision precision = ProductPrecision::float32;
};

}  // namespace attune
