#pragma once

#include <cstdint>

namespace attune {

/// Bytes per second that all threads together move to and from memory: the limit of operations without matrix products.
struct MemoryBandwidth {
  double read = 0;   // of one buffer, summed up
  double triad = 0;  // a = b + s c, McCalpin's STREAM (1995): two reads and a write, all counted
  int64_t buffer_bytes = 0;
  int64_t last_level_cache_bytes = 0;  // 0: the system does not say
};

/// Measures both; each figure is the best of the repetitions that fit into about `seconds`, at least two. Uses three
/// buffers, each four times the size of the last-level cache (from 128 MiB to 512 MiB). Throws std::bad_alloc.
MemoryBandwidth measured_memory_bandwidth(double seconds = 0.5);

}  // namespace attune
