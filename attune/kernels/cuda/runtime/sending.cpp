#include "attune/kernels/cuda/runtime/sending.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "attune/kernels/cuda/runtime/runtime.h"

namespace attune::cuda {
namespace {

constexpr size_t kLeastBytes = size_t{1} << 16;  // of a block; its size is a power of two
constexpr size_t kMostBlocks = 16;               // a batch has a few tensors; send() waits where more are on their way

struct ReleasePinned {
  void operator()(std::byte* memory) const noexcept { release_pinned(memory); }
};

struct PinnedBlock {
  size_t bytes;
  std::unique_ptr<std::byte, ReleasePinned> memory;
  std::shared_ptr<void> copied;  // the event of the last copy from it
  uint64_t turn = 0;             // of that copy
};

// The blocks of a device.
class PinnedBlocks {
 public:
  /// Returns the smallest block of at least `bytes` bytes that no copy reads; makes one, if need be in place of a
  /// smaller block. Null: each block is read by a copy, and there may be no more blocks.
  PinnedBlock* take(Cuda device, size_t bytes) {
    PinnedBlock* best = nullptr;
    PinnedBlock* too_small = nullptr;
    for (PinnedBlock& block : blocks_) {
      if (!is_done(device, block.copied.get())) continue;
      PinnedBlock*& place = block.bytes < bytes ? too_small : best;
      if (place == nullptr || block.bytes < place->bytes) place = &block;
    }
    if (best == nullptr && blocks_.size() < kMostBlocks) best = &blocks_.emplace_back(new_block(device, bytes));
    if (best == nullptr && too_small != nullptr) {
      *too_small = new_block(device, bytes);
      best = too_small;
    }
    if (best != nullptr) best->turn = ++turn_;
    return best;
  }
  /// The event of the block whose last copy is the oldest.
  std::shared_ptr<void> first_copy() const { return std::ranges::min_element(blocks_, {}, &PinnedBlock::turn)->copied; }
  size_t size() const { return blocks_.size(); }

 private:
  static PinnedBlock new_block(Cuda device, size_t bytes) {
    PinnedBlock block{.bytes = std::bit_ceil(std::max(bytes, kLeastBytes)), .memory = {}, .copied = {}};
    block.memory.reset(static_cast<std::byte*>(allocate_pinned(device, block.bytes)));
    block.copied = {make_event(device), release_event};
    return block;
  }

  std::vector<PinnedBlock> blocks_;
  uint64_t turn_ = 0;
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
  std::unique_lock lock(all_blocks().mutex);
  PinnedBlocks& blocks = all_blocks().of_device[device.index];
  PinnedBlock* block = blocks.take(device, values.size());
  for (; block == nullptr; block = blocks.take(device, values.size())) {
    const std::shared_ptr<void> first = blocks.first_copy();
    lock.unlock();
    wait(device, first.get());
    lock.lock();
  }
  std::memcpy(block->memory.get(), values.data(), values.size());
  send(device, block->memory.get(), to, values.size(), block->copied.get());
}

size_t pinned_blocks(Cuda device) {
  const std::lock_guard lock(all_blocks().mutex);
  return all_blocks().of_device[device.index].size();
}

}  // namespace attune::cuda
