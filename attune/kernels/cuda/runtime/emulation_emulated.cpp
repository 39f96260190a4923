#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "attune/base/environment.h"
#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/emulation.h"
#include "attune/kernels/cuda/runtime/fibers.h"
#include "attune/kernels/cuda/runtime/thread.h"
#include "attune/tensor/device.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/plain_memory.h"

namespace attune::cuda {

enum class Waits { nothing, warp, block };

// What the threads of a block have in common.
class EmulatedBlock {
 public:
  explicit EmulatedBlock(const EmulatedShape& shape)
      : shape_(shape),
        memory_(kReduceBytes + shape.shared_bytes),
        exchange_(static_cast<size_t>(shape.threads) * kMostReduced),
        waits_(static_cast<size_t>(shape.threads)),
        lines_(static_cast<size_t>(shape.threads)) {}

  const EmulatedShape& shape() const { return shape_; }
  int64_t number() const { return number_; }
  std::byte* memory() { return memory_.data(); }
  std::byte* exchange(int warp) { return exchange_.data() + static_cast<size_t>(warp) * kWarp * kMostReduced; }

  // Called by a thread: stops it until the others have come to the same line.
  void wait(int thread, Waits what, uint_least32_t line) {
    waits_[static_cast<size_t>(thread)] = what;
    lines_[static_cast<size_t>(thread)] = line;
    Fibers::instance().pause();
  }

  void run(int64_t number, std::span<const int> order, const std::function<void(Thread&)>& body) {
    number_ = number;
    std::ranges::fill(memory_, std::byte{0xff});  // what was not written is NaN
    std::ranges::fill(waits_, Waits::nothing);
    Fibers& fibers = Fibers::instance();
    const std::function<void(int)> one = [&](int index) {
      Thread thread(*this, index);
      body(thread);
    };
    fibers.start(shape_.threads, one);
    for (int left = shape_.threads; left > 0;) {
      for (const int thread : order) {
        if (waits_[static_cast<size_t>(thread)] != Waits::nothing || fibers.ended(thread)) continue;
        fibers.run(thread);
        if (fibers.ended(thread)) --left;
      }
      if (left > 0 && !release()) fail_waiting(left);
    }
  }

 private:
  // Lets the threads of each warp, or of the block, go on if all of them wait at one barrier. Returns whether any may.
  bool release() {
    bool released = false;
    for (int begin = 0; begin < shape_.threads; begin += kWarp)
      released = release(begin, begin + kWarp, Waits::warp) || released;
    return release(0, shape_.threads, Waits::block) || released;
  }

  bool release(int begin, int end, Waits what) {
    for (int i = begin; i < end; ++i)
      if (waits_[static_cast<size_t>(i)] != what || Fibers::instance().ended(i) ||
          lines_[static_cast<size_t>(i)] != lines_[static_cast<size_t>(begin)])
        return false;
    std::fill(waits_.begin() + begin, waits_.begin() + end, Waits::nothing);
    return true;
  }

  [[noreturn]] void fail_waiting(int left) const {
    size_t first = 0;
    while (Fibers::instance().ended(static_cast<int>(first))) ++first;
    size_t other = first;  // a thread that waits somewhere else, if none has ended
    for (size_t i = 0; i < lines_.size(); ++i)
      if (!Fibers::instance().ended(static_cast<int>(i)) && lines_[i] != lines_[first]) other = i;
    fail<DeviceError>(
        "kernel {}, block {}: {} of {} threads wait at a barrier that others do not reach: thread {} in line {}, "
        "thread {} in line {}",
        shape_.kernel, number_, left, shape_.threads, first, lines_[first], other, lines_[other]);
  }

  const EmulatedShape& shape_;
  int64_t number_ = 0;
  std::vector<std::byte> memory_, exchange_;
  std::vector<Waits> waits_;
  std::vector<uint_least32_t> lines_;  // where each thread waits
};

void fail_outside(int64_t i, int64_t count) {
  fail<DeviceError>("shared memory: {} lies outside of an array with {} elements", i, count);
}

void Thread::copy_ahead(void* to, const void* from, bool exists) const {
  for (const void* address : {static_cast<const void*>(to), from})
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      fail<DeviceError>("copy_ahead: needs addresses that are multiples of 16");
  exists ? std::memcpy(to, from, 16) : std::memset(to, 0, 16);
}

int Thread::count() const {
  return block_.shape().threads;
}
int64_t Thread::block() const {
  return block_.number();
}
int64_t Thread::blocks() const {
  return block_.shape().blocks;
}
void Thread::barrier(std::source_location at) {
  block_.wait(index_, Waits::block, at.line());
}
void Thread::warp_barrier(std::source_location at) {
  block_.wait(index_, Waits::warp, at.line());
}
void* Thread::take_shared(size_t bytes) {
  if (bytes > block_.shape().shared_bytes - used_)
    fail<DeviceError>("kernel {}: takes {} bytes of shared memory, was launched with {}", block_.shape().kernel,
                      used_ + bytes, block_.shape().shared_bytes);
  std::byte* const begin = block_.memory() + kReduceBytes + used_;
  used_ += bytes;
  return begin;
}
void* Thread::reduce_memory() {
  return block_.memory();
}
std::byte* Thread::exchange_memory() {
  return block_.exchange(warp());
}

namespace {

constexpr unsigned kForward = 0, kBackward = 1;  // other numbers are seeds

// 0 ... count - 1 in the order that `kind` says.
class Order {
 public:
  Order(int64_t count, unsigned kind) : count_(count), kind_(kind) {
    if (kind <= kBackward) return;
    shuffled_.resize(static_cast<size_t>(count));
    std::iota(shuffled_.begin(), shuffled_.end(), int64_t{0});
    std::shuffle(shuffled_.begin(), shuffled_.end(), std::mt19937(kind));
  }
  int64_t operator[](int64_t i) const {
    if (kind_ == kForward) return i;
    return kind_ == kBackward ? count_ - 1 - i : shuffled_[static_cast<size_t>(i)];
  }

 private:
  int64_t count_;
  unsigned kind_;
  std::vector<int64_t> shuffled_;
};

unsigned order_from_environment() {
  const char* const text = std::getenv("ATTUNE_CUDA_ORDER");
  if (text == nullptr || std::strcmp(text, "forward") == 0) return kForward;
  if (std::strcmp(text, "backward") == 0) return kBackward;
  return kBackward + static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

unsigned default_order() {
  static const unsigned order = order_from_environment();
  return order;
}

// How many RaceCheck objects live; one more with the environment variable.
std::atomic<int>& race_checks() {
  static std::atomic<int> checks = environment_switch("ATTUNE_CUDA_RACES") ? 1 : 0;
  return checks;
}

// Calls once(kind of order); with ATTUNE_CUDA_RACES for three orders, each from the same memory, and compares.
void in_orders(const char* kernel, const std::function<void(unsigned)>& once) {
  finish_copies();
  const PlainAccess access;
  if (race_checks() == 0) return once(default_order());
  const std::span<std::byte> memory = plain_memory();
  const std::vector<std::byte> before(memory.begin(), memory.end());
  once(kForward);
  const std::vector<std::byte> expected(memory.begin(), memory.end());
  for (const unsigned kind : {kBackward, kBackward + 1}) {
    std::memcpy(memory.data(), before.data(), before.size());
    once(kind);
    const auto [found, wanted] = std::ranges::mismatch(memory, expected);
    if (found != memory.end())
      fail<DeviceError>("kernel {}: the results depend on the order of its threads (byte {} of the memory)", kernel,
                        found - memory.begin());
  }
}

}  // namespace

RaceCheck::RaceCheck() {
  ++race_checks();
}
RaceCheck::~RaceCheck() {
  --race_checks();
}

void emulate(const EmulatedShape& shape, const std::function<void(Thread&)>& body) {
  if (shape.threads < kWarp || shape.threads > kMostThreads || shape.threads % kWarp != 0)
    fail<DeviceError>("kernel {}: {} threads in a block, needs a multiple of {} up to {}", shape.kernel, shape.threads,
                      kWarp, kMostThreads);
  in_orders(shape.kernel, [&](unsigned kind) {
    EmulatedBlock block(shape);
    const Order threads(shape.threads, kind), blocks(shape.blocks, kind);
    std::vector<int> order(static_cast<size_t>(shape.threads));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(threads[static_cast<int64_t>(i)]);
    for (int64_t b = 0; b < shape.blocks; ++b) block.run(blocks[b], order, body);
  });
}

void emulate_elements(const char* kernel, int64_t count, const std::function<void(int64_t)>& body) {
  in_orders(kernel, [&](unsigned kind) {
    const Order order(count, kind);
    for (int64_t i = 0; i < count; ++i) body(order[i]);
  });
}

}  // namespace attune::cuda
