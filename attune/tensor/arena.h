#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "attune/base/rounding.h"

namespace attune {

/// Allocates large blocks from one contiguous range of memory. take() cuts a block from the smallest free piece that is
/// large enough; give_back() joins it with its free neighbours, so that batches of another size can use the memory.
/// Not thread-safe.
class Arena {
 public:
  static constexpr size_t kGranule = size_t{64} << 10;  // blocks are multiples of this; a multiple of any page size
  static constexpr size_t block_bytes(size_t bytes) { return round_up(bytes, kGranule); }

  Arena() = default;
  /// Gives the free pieces back to the system; blocks still in use stay valid.
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Returns `bytes` of uninitialised memory, or nullptr if there is not enough. `bytes` is a multiple of kGranule
  /// above 0. Throws std::bad_alloc if there is no memory for the arena's own tables.
  void* take(size_t bytes);
  void give_back(void* block, size_t bytes) noexcept;
  /// Gives the free pieces back to the system.
  void release() noexcept;

  size_t reserved_bytes() const { return reserved_; }
  size_t system_allocations() const { return system_allocations_; }

 private:
  using Pieces = std::map<std::byte*, size_t>;  // by address; no two are adjacent

  void add(std::byte* begin, size_t bytes);
  void remove(Pieces::iterator piece);
  void unmap(std::byte* begin, size_t bytes) noexcept;
  bool grow(size_t bytes);

  Pieces free_;
  std::set<std::pair<size_t, std::byte*>> by_size_;  // the same pieces
  std::byte* bottom_ = nullptr;                      // of the range, which grows downwards as the system's maps do
  size_t reserved_ = 0, system_allocations_ = 0;
};

}  // namespace attune
