#include "attune/kernels/cuda/sending.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "attune/kernels/cuda/runtime.h"

namespace attune::cuda {
namespace {

constexpr size_t kLeastBytes = size_t{1} << 16;  // of a block; larger ones have powers of two
constexpr size_t kMostBlocks = 16;               // a batch has a few tensors, and two batches are on their way at most

struct ReleasePinned {
  void operator()(std::byte* memory) const noexcept { release_pinned(memory); }
};
struct ReleaseEvent {
  void operator()(void* event) const noexcept { release_event(event); }
};

struct PinnedBlock {
  size_t bytes;
  std::unique_ptr<std::byte, ReleasePinned> memory;
  std::unique_ptr<void, ReleaseEvent> copied;  // the last copy from it
};

// The blocks of a device.
class PinnedBlocks {
 public:
  /// A block of at least so many bytes that no copy reads.
  PinnedBlock& take(Cuda device, size_t bytes) {
    const auto suits = [&](const PinnedBlock& b) { return b.bytes >= bytes && is_done(device, b.copied.get()); };
    if (const auto free = std::ranges::find_if(blocks_, suits); free != blocks_.end()) return *free;
    if (blocks_.size() < kMostBlocks) return blocks_.emplace_back(new_block(device, bytes));
    synchronize(device);  // which waits for all copies
    if (const auto free = std::ranges::find_if(blocks_, suits); free != blocks_.end()) return *free;
    return blocks_.front() = new_block(device, bytes);
  }
  size_t size() const { return blocks_.size(); }

 private:
  static PinnedBlock new_block(Cuda device, size_t bytes) {
    PinnedBlock block{.bytes = std::bit_ceil(std::max(bytes, kLeastBytes)), .memory = {}, .copied = {}};
    block.memory.reset(static_cast<std::byte*>(allocate_pinned(device, block.bytes)));
    block.copied.reset(make_event(device));
    return block;
  }

  std::vector<PinnedBlock> blocks_;
};

struct AllBlocks {
  std::mutex mutex;
  std::map<int, PinnedBlocks> of_device;  // by its number
};

AllBlocks& all_blocks() {
  static auto* const all = new AllBlocks;  // never destroyed: the driver may be gone by then
  return *all;
}

}  // namespace

void send(Cuda device, std::span<const std::byte> values, void* to) {
  if (values.empty()) return;
  const std::lock_guard lock(all_blocks().mutex);
  const PinnedBlock& block = all_blocks().of_device[device.index].take(device, values.size());
  std::memcpy(block.memory.get(), values.data(), values.size());
  send(device, block.memory.get(), to, values.size(), block.copied.get());
}

size_t pinned_blocks(Cuda device) {
  const std::lock_guard lock(all_blocks().mutex);
  return all_blocks().of_device[device.index].size();
}

}  // namespace attune::cuda
