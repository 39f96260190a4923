#pragma once

#include <cstdint>
#include <optional>

#include "attune/base/execution.h"
#include "attune/tensor/device.h"

namespace [[gnu::visibility("default")]] attune {

struct SchedulerOptions {
  /// The most bytes that the caches of all requests may take together. A request is admitted when the most that it can
  /// come to need is free. 0: three quarters of process_memory_limit(), on a GPU of what is free there.
  int64_t cache_bytes = 0;
  /// With bfloat16, matrix products round activations to it too, which is faster on processors with instructions for
  /// it. Models are loaded with weights in bfloat16 then.
  ProductPrecision precision = ProductPrecision::float32;
  /// Where the model computes. It is moved there; none: it stays where it is, which for a folder is the CPU.
  std::optional<Device> device = {};
};

}  // namespace attune
