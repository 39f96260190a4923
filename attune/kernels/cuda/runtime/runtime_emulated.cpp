// The driver of the emulation: four devices whose memory is that of the plain device.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <vector>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/emulation.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/kernels/cuda/runtime/streams_emulated.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/plain_memory.h"

namespace attune::cuda {
namespace {

constexpr int kDevices = 4;
constexpr size_t kMostBytes = size_t{1} << 32;
constexpr size_t kMostSharedBytes = 163u << 10;  // of a block, with compute capability 8.0; later GPUs have more

struct Blocks {
  std::mutex mutex;
  std::unordered_map<void*, std::shared_ptr<Buffer>> all;  // by address
};

Blocks& blocks() {
  static Blocks* const all = new Blocks;  // outlives every tensor, also static ones
  return *all;
}

struct Copy {
  const void* from;
  void* to;
  size_t bytes;
  std::atomic<bool>* done;
};

// Copies that are still to be done, in the order in which they were started.
struct LateList {
  std::mutex mutex;
  std::vector<Copy> sent, fetched;
};

LateList& late_list() {
  static LateList* const all = new LateList;
  return *all;
}

// How many LateCopies objects live; one more with the environment variable.
std::atomic<int>& late_copies() {
  static std::atomic<int> all = [] {
    const char* const text = std::getenv("ATTUNE_CUDA_COPIES");
    return text != nullptr && std::strcmp(text, "late") == 0 ? 1 : 0;
  }();
  return all;
}

void do_copy(const Copy& copy) {
  const PlainAccess access;
  if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
  *copy.done = true;
}

// How many NoPinnedMemory objects live.
std::atomic<int> without_pinned_memory = 0;

thread_local int current = 0;

std::array<std::atomic<uint64_t>, kDevices> work, waits;

void count_work(Cuda device) {
  ++work[static_cast<size_t>(device.index)];
}
void count_wait(Cuda device) {
  ++waits[static_cast<size_t>(device.index)];
}

}  // namespace

uint64_t work_of(Cuda device) {
  return work[static_cast<size_t>(device.index)];
}
uint64_t waits_of(Cuda device) {
  return waits[static_cast<size_t>(device.index)];
}

void check_device(Cuda device) {
  if (device.index < 0 || device.index >= kDevices)
    fail<DeviceError>("device {}: the emulation has {} devices", Device(device).text(), kDevices);
}

int device_count() {
  return kDevices;
}

// The process and the number in it.
std::array<std::byte, 16> identity_of(Cuda device) {
  const std::array<int64_t, 2> numbers = {::getpid(), device.index};
  std::array<std::byte, 16> identity{};
  std::memcpy(identity.data(), numbers.data(), identity.size());
  return identity;
}

int use(Cuda device) {
  return std::exchange(current, device.index);
}
void use_again(int index) noexcept {
  current = index;
}

LateCopies::LateCopies() {
  ++late_copies();
}
LateCopies::~LateCopies() {
  --late_copies();
  finish_copies();
}

NoPinnedMemory::NoPinnedMemory() {
  ++without_pinned_memory;
}
NoPinnedMemory::~NoPinnedMemory() {
  --without_pinned_memory;
}

void finish_copies() {
  const std::lock_guard lock(late_list().mutex);
  for (const Copy& copy : late_list().sent) do_copy(copy);
  late_list().sent.clear();
}

void* allocate(Cuda device, size_t bytes) try {
  std::shared_ptr<Buffer> buffer = allocate_plain_buffer(bytes);
  void* const memory = buffer->data();
  const std::lock_guard lock(blocks().mutex);
  blocks().all.emplace(memory, std::move(buffer));
  return memory;
} catch (const std::bad_alloc&) {
  fail<DeviceOutOfMemory>("device {}: {} bytes do not fit into the {} of the emulation", Device(device).text(), bytes,
                          kMostBytes);
}

void release(Cuda, void* memory) noexcept {
  finish_copies();
  const std::lock_guard lock(blocks().mutex);
  blocks().all.erase(memory);
}

void copy_from_host(Cuda device, const void* from, void* to, size_t bytes) {
  copy_on_device(device, from, to, bytes);
}
void copy_to_host(Cuda device, const void* from, void* to, size_t bytes) {
  count_wait(device);
  copy_on_device(device, from, to, bytes);
}
void copy_on_device(Cuda device, const void* from, void* to, size_t bytes) {
  finish_copies();
  const PlainAccess access;
  count_work(device);
  if (bytes > 0) std::memmove(to, from, bytes);
}
void clear(Cuda device, void* memory, size_t bytes) {
  finish_copies();
  const PlainAccess access;
  count_work(device);
  if (bytes > 0) std::memset(memory, 0, bytes);
}

void* allocate_pinned(Cuda device, size_t bytes) {
  if (without_pinned_memory > 0) fail<DeviceError>("device {}: there is no pinned memory", Device(device).text());
  return ::operator new(bytes);
}
void release_pinned(void* memory) noexcept {
  ::operator delete(memory);
}

void* make_event(Cuda) {
  return new std::atomic<bool>(true);
}
void release_event(void* event) noexcept {
  delete static_cast<std::atomic<bool>*>(event);
}
bool is_done(Cuda, void* event) {
  return *static_cast<std::atomic<bool>*>(event);
}

// A late copy leaves some time to the thread that started it: what that thread does too early is then done before the
// copy.
void wait(Cuda device, void* event) {
  const auto* const done = static_cast<std::atomic<bool>*>(event);
  if (*done) return;
  count_wait(device);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  {
    const std::lock_guard lock(late_list().mutex);
    std::vector<Copy>& fetched = late_list().fetched;
    if (const auto at = std::ranges::find(fetched, done, &Copy::done); at != fetched.end()) {
      do_copy(*at);
      fetched.erase(at);
      return;
    }
  }
  finish_copies();
}

void* allocate_for_sending(Cuda device, size_t bytes) {
  return allocate(device, bytes);
}
void send(Cuda, const void* from, void* to, size_t bytes, void* event) {
  const Copy copy{from, to, bytes, static_cast<std::atomic<bool>*>(event)};
  if (late_copies() == 0) return do_copy(copy);
  const std::lock_guard lock(late_list().mutex);
  *copy.done = false;
  late_list().sent.push_back(copy);
}

// The copy comes after the device's work, and that comes after what was sent.
void fetch(Cuda, const void* from, void* to, size_t bytes, void* event) {
  finish_copies();
  const Copy copy{from, to, bytes, static_cast<std::atomic<bool>*>(event)};
  if (late_copies() == 0) return do_copy(copy);
  if (bytes > 0) std::memset(to, 0xff, bytes);  // NaN
  const std::lock_guard lock(late_list().mutex);
  *copy.done = false;
  late_list().fetched.push_back(copy);
}

void synchronize(Cuda device) {
  count_wait(device);
  finish_copies();
}

DeviceMemory memory_of(Cuda) {
  return {kMostBytes, kMostBytes, plain_memory().size()};
}
void* stream_of(Cuda) {
  return nullptr;
}
void check_launch(Cuda device, const char*) {
  count_work(device);
}

void allow_shared(Cuda device, const char* kernel, const void*, size_t bytes) {
  if (bytes > kMostSharedBytes) refuse_shared(device, kernel, bytes, kMostSharedBytes);
}

}  // namespace attune::cuda
