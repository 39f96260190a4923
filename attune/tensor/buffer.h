#pragma once
// Memory of tensors. Freed memory is kept and used again: large blocks in an Arena, small ones in size classes. So a
// training step in steady state allocates nothing from the system.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace [[gnu::visibility("default")]] attune {

/// A piece of memory, and the owner that releases it.
class Buffer {
 public:
  Buffer(void* data, size_t bytes, std::shared_ptr<const void> owner)
      : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  std::shared_ptr<const void> owner_;  // releases the memory when the last buffer on it is destroyed
};

/// Uninitialised memory, aligned to 64 bytes, from the caching allocator. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<Buffer> allocate_buffer(size_t bytes);

struct AllocatorStatistics {
  int64_t system_allocations = 0;  // how often the system was asked for memory
  int64_t bytes_in_use = 0;        // by buffers, rounded to size classes
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_reserved = 0;  // allocated from the system, in use or kept
};

AllocatorStatistics allocator_statistics();
void reset_peak_bytes();

/// Gives all memory that is not in use back to the system.
void release_cached_memory();

}  // namespace attune
