#include "attune/tensor/plain_memory.h"

#include <sys/mman.h>

#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "attune/base/rounding.h"
#include "attune/tensor/device.h"

namespace attune {
namespace {

constexpr size_t kReserved = size_t{1} << 32;  // address space; pages cost memory once they are written
constexpr size_t kLeast = 64;                  // bytes of a block
constexpr size_t kStep = size_t{1} << 22;      // the accessible part grows by this

// Cuts blocks from one range of addresses, from its beginning. The size of a block is a power of two. Keeps free blocks
// by their size.
class PlainMemory {
 public:
  static PlainMemory& instance() {
    static PlainMemory* memory = new PlainMemory;  // outlives every tensor, also static ones
    return *memory;
  }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& kept = free_[bytes];
    if (!kept.empty()) {
      std::byte* const block = kept.back();
      kept.pop_back();
      return block;
    }
    if (begin_ == nullptr) reserve();
    if (bytes > kReserved - used_) throw std::bad_alloc();
    std::byte* const block = begin_ + used_;
    used_ += bytes;
    if (used_ > usable_) {
      usable_ = round_up(used_, kStep);
      if (readers_ > 0) protect(PROT_READ | PROT_WRITE);
    }
    return block;
  }

  void give_back(void* block, size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      free_[bytes].push_back(static_cast<std::byte*>(block));
    } catch (const std::bad_alloc&) {
      return;  // no memory to record the free block: its addresses are lost
    }
  }

  std::span<std::byte> used() {
    const std::lock_guard lock(mutex_);
    return {begin_, used_};
  }

  void open() {
    const std::lock_guard lock(mutex_);
    if (readers_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    if (--readers_ == 0) protect(PROT_NONE);
  }

 private:
  void reserve() {
    void* const stretch =
        mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
    if (stretch == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(stretch);
  }
  void protect(int permissions) noexcept {
    if (usable_ > 0) mprotect(begin_, usable_, permissions);
  }

  std::mutex mutex_;
  std::byte* begin_ = nullptr;
  size_t used_ = 0, usable_ = 0;
  int64_t readers_ = 0;  // PlainAccess objects that live
  std::map<size_t, std::vector<std::byte*>> free_;
};

class PlainBuffer final : public Buffer {
 public:
  PlainBuffer(void* data, size_t bytes, size_t block_bytes) : Buffer(data, bytes, nullptr), block_bytes_(block_bytes) {}
  ~PlainBuffer() { PlainMemory::instance().give_back(data(), block_bytes_); }
  PlainBuffer(const PlainBuffer&) = delete;
  PlainBuffer& operator=(const PlainBuffer&) = delete;

 private:
  size_t block_bytes_;
};

}  // namespace

std::shared_ptr<Buffer> allocate_plain_buffer(size_t bytes) {
  if (bytes > kReserved) throw std::bad_alloc();
  const size_t block_bytes = std::bit_ceil(bytes < kLeast ? kLeast : bytes);
  void* const block = PlainMemory::instance().take(block_bytes);
  try {
    return std::make_shared<PlainBuffer>(block, bytes, block_bytes);
  } catch (const std::bad_alloc&) {
    PlainMemory::instance().give_back(block, block_bytes);
    throw;
  }
}

std::span<std::byte> plain_memory() {
  return PlainMemory::instance().used();
}

PlainAccess::PlainAccess() {
  PlainMemory::instance().open();
}
PlainAccess::~PlainAccess() {
  PlainMemory::instance().close();
}

}  // namespace attune
