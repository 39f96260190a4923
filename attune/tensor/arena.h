#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace attune {

/// Large blocks out of one long stretch of memory. A block is cut from the smallest free piece that it fits into, and
/// joined with its free neighbours when it comes back, so that what batches of one size leave serves those of another.
/// Not thread-safe.
class Arena {
 public:
  static constexpr size_t kGranule = size_t{64} << 10;  // of blocks: a multiple of every system's page
  static constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
  static constexpr size_t block_bytes(size_t bytes) { return round_up(bytes, kGranule); }

  Arena() = default;
  /// Gives the free pieces back to the system; blocks that were not given back stay.
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// `bytes`, a multiple of kGranule above 0, of uninitialised memory, or nullptr when there is not so much. Throws
  /// std::bad_alloc when there is no room for its own notes.
  void* take(size_t bytes);
  void give_back(void* block, size_t bytes) noexcept;
  /// Gives the free pieces back to the system.
  void release() noexcept;

  size_t reserved_bytes() const { return reserved_; }
  size_t system_allocations() const { return system_allocations_; }

 private:
  using Pieces = std::map<std::byte*, size_t>;  // by address, never two in a row

  void add(std::byte* begin, size_t bytes);
  void remove(Pieces::iterator piece);
  void unmap(std::byte* begin, size_t bytes) noexcept;
  bool grow(size_t bytes);

  Pieces free_;
  std::set<std::pair<size_t, std::byte*>> by_size_;  // the same
  std::byte* bottom_ = nullptr;                      // of the stretch, which grows downwards as the system's maps do
  size_t reserved_ = 0, system_allocations_ = 0;
};

}  // namespace attune
