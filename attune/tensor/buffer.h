#pragma once
// Memory of tensors. Freed memory is kept, large blocks in an Arena and small ones in size classes, and handed out
// again, so that a training step in steady state asks the system for nothing.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace [[gnu::visibility("default")]] attune {

/// A piece of memory with its own way of being released.
class Buffer {
 public:
  Buffer(void* data, size_t bytes, std::shared_ptr<const void> owner)
      : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  std::shared_ptr<const void> owner_;  // gives the memory back when the last buffer on it is gone
};

/// Uninitialised memory, aligned to 64 bytes, from the caching allocator. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<Buffer> allocate_buffer(size_t bytes);

struct AllocatorStatistics {
  int64_t system_allocations = 0;  // how often the system was asked for memory
  int64_t bytes_in_use = 0;        // handed out, rounded to size classes
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_reserved = 0;  // held from the system, in use or kept
};

AllocatorStatistics allocator_statistics();
void reset_peak_bytes();

/// Gives everything that is kept and not in use back to the system.
void release_cached_memory();

}  // namespace attune
