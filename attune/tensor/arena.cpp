#include "attune/tensor/arena.h"

#include <sys/mman.h>

#include <cstdint>
#include <iterator>
#include <new>

namespace attune {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Maps memory at `place` if it is not null and free; a system that does not know the flag may choose another address.
std::byte* map(std::byte* place, size_t bytes) {
#if defined(MAP_FIXED_NOREPLACE)
  const int there = place != nullptr ? MAP_FIXED_NOREPLACE : 0;
#else
  const int there = 0;
#endif
  void* const found = ::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | there, -1, 0);
  return found == MAP_FAILED ? nullptr : static_cast<std::byte*>(found);
}

// Maps memory that begins at a multiple of kHugePage.
std::byte* map_aligned(size_t bytes) {
  std::byte* const found = map(nullptr, bytes + kHugePage);
  if (found == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(found);
  const size_t before = round_up(address, kHugePage) - address, behind = kHugePage - before;
  if (before > 0) ::munmap(found, before);
  if (behind > 0) ::munmap(found + before + bytes, behind);
  return found + before;
}

}  // namespace

void* Arena::take(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  auto found = by_size_.lower_bound({bytes, nullptr});
  if (found == by_size_.end()) {
    if (!grow(bytes)) return nullptr;
    found = by_size_.lower_bound({bytes, nullptr});
  }
  // Cuts from the upper end, so that the rest keeps its key in free_, its address.
  const auto piece = free_.find(found->second);
  std::byte* const block = piece->first + (piece->second - bytes);
  if (piece->second == bytes) {
    remove(piece);
  } else {
    auto node = by_size_.extract(found);
    node.value().first -= bytes;
    by_size_.insert(std::move(node));
    piece->second -= bytes;
  }
  return block;
}

void Arena::give_back(void* block, size_t bytes) noexcept {
  auto* const begin = static_cast<std::byte*>(block);
  try {
    add(begin, bytes);
  } catch (const std::bad_alloc&) {  // no memory to record the free piece
    unmap(begin, bytes);
  }
}

void Arena::release() noexcept {
  for (const auto& [begin, bytes] : free_) unmap(begin, bytes);
  free_.clear();
  by_size_.clear();
}

// Adds the piece to the free ones and joins it with its free neighbours. Changes nothing if it throws.
void Arena::add(std::byte* begin, size_t bytes) {
  const auto next = free_.lower_bound(begin);
  const bool joins_next = next != free_.end() && begin + bytes == next->first;
  const bool joins_previous = next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin;
  if (joins_previous) {
    const auto previous = std::prev(next);
    auto node = by_size_.extract({previous->second, previous->first});
    previous->second += bytes + (joins_next ? next->second : 0);
    node.value().first = previous->second;
    by_size_.insert(std::move(node));
    if (joins_next) remove(next);
    return;
  }
  if (joins_next) {
    auto by_size = by_size_.extract({next->second, next->first});
    by_size.value() = {next->second + bytes, begin};
    by_size_.insert(std::move(by_size));
    auto by_address = free_.extract(next);
    by_address.key() = begin;
    by_address.mapped() += bytes;
    free_.insert(std::move(by_address));
    return;
  }
  const auto piece = free_.emplace(begin, bytes).first;
  try {
    by_size_.emplace(bytes, begin);
  } catch (const std::bad_alloc&) {
    free_.erase(piece);
    throw;
  }
}

void Arena::remove(Pieces::iterator piece) {
  by_size_.erase({piece->second, piece->first});
  free_.erase(piece);
}

void Arena::unmap(std::byte* begin, size_t bytes) noexcept {
  ::munmap(begin, bytes);
  reserved_ -= bytes;
  if (reserved_ == 0) bottom_ = nullptr;
}

// Makes a free piece of `bytes`: extends the free piece at the lower end downwards if the addresses below it are free.
bool Arena::grow(size_t bytes) {
  const auto rest = free_.find(bottom_);
  size_t missing = round_up(bytes - (rest != free_.end() ? rest->second : 0), kHugePage);
  std::byte* begin = nullptr;
  if (bottom_ != nullptr && reinterpret_cast<uintptr_t>(bottom_) > missing) {
    begin = map(bottom_ - missing, missing);
    if (begin != nullptr && begin + missing != bottom_) {
      ::munmap(begin, missing);
      begin = nullptr;
    }
  }
  if (begin == nullptr) {
    missing = round_up(bytes, kHugePage);
    begin = map_aligned(missing);
  }
  if (begin == nullptr) return false;
  ::madvise(begin, missing, MADV_HUGEPAGE);
  reserved_ += missing;
  ++system_allocations_;
  try {
    add(begin, missing);
  } catch (const std::bad_alloc&) {
    unmap(begin, missing);
    throw;
  }
  bottom_ = begin;
  return true;
}

}  // namespace attune
