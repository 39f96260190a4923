#include "attune/tensor/buffer.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "attune/base/out_of_memory.h"
#include "attune/base/rounding.h"
#include "attune/tensor/arena.h"

namespace attune {
namespace {

constexpr size_t kAlignment = 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kLarge = SIZE_MAX;  // sanitizers: no arena, so that they see a read beyond a block
#else
constexpr size_t kLarge = size_t{1} << 20;  // larger blocks come from the arena
#endif

// Small blocks have four sizes for each power of two: at most a quarter of a block is unused, and there are few sizes.
size_t size_class(size_t bytes) {
  if (bytes >= kLarge && bytes < SIZE_MAX / 2) return Arena::block_bytes(bytes);
  if (bytes <= 4 * kAlignment) return round_up(bytes, kAlignment) + (bytes == 0 ? kAlignment : 0);
  const size_t step = std::bit_floor(bytes - 1) / 4;
  return round_up(bytes, step);
}

class CachingAllocator {
 public:
  ~CachingAllocator() { release(); }

  struct Block {
    void* data;
    size_t bytes;
  };

  /// Returns a block of at least `bytes`, a size class. Takes a small block that is free and at most half as large
  /// again before it asks the system for another.
  Block take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block block{nullptr, bytes};
    for (auto it = free_.lower_bound(bytes); it != free_.end() && it->first <= bytes + bytes / 2; ++it) {
      if (it->second.empty()) continue;
      block = {it->second.back(), it->first};
      it->second.pop_back();
      break;
    }
    if (block.data == nullptr) block.data = new_block(bytes);
    if (block.data == nullptr) {
      release_locked();  // the memory of free blocks may be enough for this one
      block.data = new_block(bytes);
    }
    if (block.data == nullptr) throw OutOfMemory(bytes);
    statistics_.bytes_in_use += static_cast<int64_t>(block.bytes);
    statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
    return block;
  }

  void give_back(void* block, size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= static_cast<int64_t>(bytes);
    if (bytes >= kLarge) return large_.give_back(block, bytes);
    try {
      free_[bytes].push_back(block);
    } catch (const std::bad_alloc&) {  // no memory to record the free block: the system gets it back
      std::free(block);
      statistics_.bytes_reserved -= static_cast<int64_t>(bytes);
    }
  }

  void release() {
    const std::lock_guard lock(mutex_);
    release_locked();
  }

  AllocatorStatistics statistics() {
    const std::lock_guard lock(mutex_);
    AllocatorStatistics all = statistics_;
    all.system_allocations += static_cast<int64_t>(large_.system_allocations());
    all.bytes_reserved += static_cast<int64_t>(large_.reserved_bytes());
    return all;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  }

 private:
  void* new_block(size_t bytes) {
    if (bytes >= kLarge) return large_.take(bytes);
    void* const block = std::aligned_alloc(kAlignment, bytes);
    if (block == nullptr) return nullptr;
    ++statistics_.system_allocations;
    statistics_.bytes_reserved += static_cast<int64_t>(bytes);
    return block;
  }

  void release_locked() {
    for (auto& [bytes, blocks] : free_) {
      for (void* block : blocks) std::free(block);
      statistics_.bytes_reserved -= static_cast<int64_t>(bytes * blocks.size());
      blocks.clear();
    }
    large_.release();
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // small blocks by size class
  Arena large_;
  AllocatorStatistics statistics_;
};

// The pool of the process. Each buffer holds it, so that it outlives every tensor, also static ones.
const std::shared_ptr<CachingAllocator>& pool() {
  static const std::shared_ptr<CachingAllocator> allocator = std::make_shared<CachingAllocator>();
  return allocator;
}

// One allocation holds the buffer and its reference count, since decoding makes thousands of small tensors a second.
class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<CachingAllocator> allocator, CachingAllocator::Block block, size_t bytes)
      : Buffer(block.data, bytes, nullptr), allocator_(std::move(allocator)), block_(block) {}
  ~PooledBuffer() { allocator_->give_back(block_.data, block_.bytes); }
  PooledBuffer(const PooledBuffer&) = delete;
  PooledBuffer& operator=(const PooledBuffer&) = delete;

 private:
  std::shared_ptr<CachingAllocator> allocator_;
  CachingAllocator::Block block_;
};

}  // namespace

std::shared_ptr<Buffer> allocate_buffer(size_t bytes) {
  const size_t rounded = size_class(bytes);
  const std::shared_ptr<CachingAllocator>& allocator = pool();
  const CachingAllocator::Block block = allocator->take(rounded);
  try {
    return std::make_shared<PooledBuffer>(allocator, block, bytes);
  } catch (const std::bad_alloc&) {
    allocator->give_back(block.data, block.bytes);
    throw;
  }
}

AllocatorStatistics allocator_statistics() {
  return pool()->statistics();
}
void reset_peak_bytes() {
  pool()->reset_peak();
}
void release_cached_memory() {
  pool()->release();
}

}  // namespace attune
