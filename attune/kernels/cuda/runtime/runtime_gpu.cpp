#include "attune/kernels/cuda/runtime/runtime_gpu.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>

#include "attune/base/environment.h"
#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune::cuda {
namespace {

constexpr int kMostDevices = 64;
constexpr int kLeastCapability = 80;  // compute capability 8.0: the oldest that the kernels are compiled for

struct DeviceState {
  std::once_flag once;
  cudaStream_t stream = nullptr;
  cudaStream_t copies = nullptr;     // of send(), beside the work
  cudaStream_t fetches = nullptr;    // of fetch()
  bool reads_host_in_place = false;  // reads memory of the host by the host's page tables (Grace)
};

DeviceState& state_of(Cuda device) {
  static auto* const states = new std::array<DeviceState, kMostDevices>;  // outlives every tensor, also static ones
  return (*states)[static_cast<size_t>(device.index)];
}

std::atomic<const char*> last_kernel = "none";

std::string name_of(Cuda device) {
  return Device(device).text();
}

[[noreturn]] void fail_with(Cuda device, std::string_view what, cudaError_t error) {
  cudaGetLastError();  // clears it: check_launch() would report it for the next kernel too
  fail<DeviceError>(
      "device {}: {} failed: {} (the last kernel that was started is {}; with ATTUNE_CUDA_WAIT=1 it is "
      "the one that failed)",
      name_of(device), what, cudaGetErrorString(error), last_kernel.load());
}

int count_or_fail(Cuda device) {
  int count = 0;
  switch (const cudaError_t error = cudaGetDeviceCount(&count)) {
    case cudaSuccess:
      return count;
    case cudaErrorNoDevice:
      return 0;
    case cudaErrorInsufficientDriver: {
      int driver = 0, runtime = 0;
      cudaDriverGetVersion(&driver);
      cudaRuntimeGetVersion(&runtime);
      if (driver == 0) fail<DeviceError>("device {}: no driver of NVIDIA is installed", name_of(device));
      fail<DeviceError>("device {}: the driver is for CUDA {}.{}, Attune needs one for CUDA {} or newer",
                        name_of(device), driver / 1000, driver % 1000 / 10, runtime / 1000);
    }
    default:
      fail<DeviceError>("device {}: {}", name_of(device), cudaGetErrorString(error));
  }
}

struct DestroyStream {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
};
using OwnedStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

OwnedStream make_stream(Cuda device) {
  cudaStream_t made = nullptr;
  check(device, "making a stream", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  return OwnedStream(made);
}

// Checks that the GPU can be used, and makes its streams. Memory that is given back stays with the process, so that a
// training step in steady state asks the driver for none.
void prepare(Cuda device) {
  const int count = count_or_fail(device);
  if (device.index < 0 || device.index >= count) refuse_missing(device, count);
  int major = 0, minor = 0;
  constexpr const char* kAsking = "asking for its compute capability";
  check(device, kAsking, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
  check(device, kAsking, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
  if (major * 10 + minor < kLeastCapability)
    fail<DeviceError>("device {}: has compute capability {}.{}, Attune needs {}.{} or newer", name_of(device), major,
                      minor, kLeastCapability / 10, kLeastCapability % 10);
  int in_place = 0;
  check(device, "asking how it reads the memory of the host",
        cudaDeviceGetAttribute(&in_place, cudaDevAttrPageableMemoryAccessUsesHostPageTables, device.index));
  const CudaScope scope(device);
  OwnedStream stream = make_stream(device), copies = make_stream(device), fetches = make_stream(device);
  cudaMemPool_t pool = nullptr;
  check(device, "asking for the memory pool", cudaDeviceGetDefaultMemPool(&pool, device.index));
  uint64_t all = UINT64_MAX;
  check(device, "keeping memory", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  DeviceState& state = state_of(device);
  state.reads_host_in_place = in_place != 0;
  state.stream = stream.release();
  state.copies = copies.release();
  state.fetches = fetches.release();
}

// Whether anybody uses this GPU in the process. Asks the driver, since every question to CUDA's runtime about a GPU,
// and cudaSetDevice() too, makes the process a user of it, which takes hundreds of megabytes of its memory.
bool is_in_use(int index) {
  using State = int (*)(int device, unsigned* flags, int* active);  // returns 0 for success
  static const State state = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    constexpr const char* kName = "cuDevicePrimaryCtxGetState";
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion(kName, &function, 7000, cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint(kName, &function, cudaEnableDefault, &found);
#endif
    return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<State>(function) : nullptr;
  }();
  unsigned flags = 0;
  int active = 0;
  return state != nullptr && state(index, &flags, &active) == 0 && active != 0;
}

// Free bytes include those that the pool of the device holds for later requests; all tensors are in that pool.
DeviceMemory memory_with_pool(Cuda device) {
  DeviceMemory memory{};
  check(device, "asking for free memory", cudaMemGetInfo(&memory.free, &memory.total));
  cudaMemPool_t pool = nullptr;
  uint64_t held = 0, used = 0, peak = 0;
  check(device, "asking for the memory pool", cudaDeviceGetDefaultMemPool(&pool, device.index));
  check(device, "asking for the memory pool", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &held));
  check(device, "asking for the memory pool", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  check(device, "asking for the memory pool", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &peak));
  memory.free += held - used;
  memory.peak = peak;
  return memory;
}

// What an error for lack of memory advises: settings that need less.
const char* advice() {
  return execution().recording
             ? "a smaller batch (train.batch_tokens), shorter sequences or train.checkpoint_activations need less"
             : "fewer or shorter texts at once (batch_sentences, batch_texts, batch_tokens) or a smaller cache "
               "(cache_bytes) need less";
}

cudaStream_t stream(Cuda device) {
  return static_cast<cudaStream_t>(stream_of(device));
}

void copy(Cuda device, const void* from, void* to, size_t bytes, cudaMemcpyKind kind) {
  if (bytes > 0) check(device, "a copy", cudaMemcpyAsync(to, from, bytes, kind, stream(device)));
}

}  // namespace

void check(Cuda device, std::string_view what, cudaError_t error) {
  if (error != cudaSuccess) fail_with(device, what, error);
}

void check_device(Cuda device) {
  if (device.index < 0 || device.index >= kMostDevices)
    fail<DeviceError>("device {}: needs a number from 0 to {}", name_of(device), kMostDevices - 1);
  std::call_once(state_of(device).once, prepare, device);
}

int device_count() {
  return count_or_fail(Cuda{});
}

std::array<std::byte, 16> identity_of(Cuda device) {
  cudaDeviceProp properties{};
  check(device, "asking for its properties", cudaGetDeviceProperties(&properties, device.index));
  std::array<std::byte, 16> identity{};
  static_assert(sizeof(properties.uuid) == identity.size());
  std::memcpy(identity.data(), &properties.uuid, identity.size());
  return identity;
}

// For a thread that never chose a device, cudaGetDevice() returns the first one, but the thread has no context of it.
// cuBLASLt needs one, and cudaMallocAsync(), which may be all that comes before a product, makes none.
int use(Cuda device) {
  thread_local bool has_context = false;
  int before = 0;
  check(device, "choosing the device", cudaGetDevice(&before));
  if (before != device.index || !has_context) check(device, "choosing the device", cudaSetDevice(device.index));
  has_context = true;
  return before;
}

// For a thread that never chose a device, `index` is the first one, which the process may not use at all.
void use_again(int index) noexcept {
  int now = index;
  if (cudaGetDevice(&now) == cudaSuccess && now != index && is_in_use(index)) cudaSetDevice(index);
}

namespace {

void* allocate_in(cudaStream_t order, Cuda device, size_t bytes) {
  void* memory = nullptr;
  const CudaScope scope(device);
  const cudaError_t error = cudaMallocAsync(&memory, bytes == 0 ? 1 : bytes, order);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // the next call begins without an error
    const DeviceMemory now = memory_of(device);
    fail<DeviceOutOfMemory>("device {}: {} bytes do not fit, {} of {} are free; {}", name_of(device), bytes, now.free,
                            now.total, advice());
  }
  check(device, "allocating memory", error);
  return memory;
}

// To be called before memory or an event is given back. From a thread that never chose a device, such a call would go
// to the first one and make the process a user of it. So a device that is in use becomes current; which one does not
// matter.
void use_one_in_use() noexcept {
  thread_local bool done = false;
  if (done) return;
  done = true;
  int now = 0;
  if (cudaGetDevice(&now) != cudaSuccess || is_in_use(now)) return;
  for (int index = 0; index < kMostDevices; ++index)
    if (is_in_use(index)) {
      cudaSetDevice(index);
      return;
    }
}

// Clears an error of giving something back, so that check_launch() does not report it for the next kernel.
void forget_error(cudaError_t error) noexcept {
  if (error != cudaSuccess) cudaGetLastError();
}

}  // namespace

void* allocate(Cuda device, size_t bytes) {
  return allocate_in(stream(device), device, bytes);
}
void* allocate_for_sending(Cuda device, size_t bytes) {
  return allocate_in(state_of(device).copies, device, bytes);
}

// Also for memory that was allocated for sending: the stream has waited for the copy.
void release(Cuda device, void* memory) noexcept {
  use_one_in_use();
  forget_error(cudaFreeAsync(memory, stream(device)));
}

void copy_from_host(Cuda device, const void* from, void* to, size_t bytes) {
  copy(device, from, to, bytes, cudaMemcpyHostToDevice);
  // Elsewhere the driver has a copy of `from` by now. Here the copy may read it later, in the order of the stream.
  if (state_of(device).reads_host_in_place) synchronize(device);
}
void copy_to_host(Cuda device, const void* from, void* to, size_t bytes) {
  copy(device, from, to, bytes, cudaMemcpyDeviceToHost);
  synchronize(device);
}
void copy_on_device(Cuda device, const void* from, void* to, size_t bytes) {
  copy(device, from, to, bytes, cudaMemcpyDeviceToDevice);
}
void clear(Cuda device, void* memory, size_t bytes) {
  if (bytes > 0) check(device, "clearing memory", cudaMemsetAsync(memory, 0, bytes, stream(device)));
}

void* allocate_pinned(Cuda device, size_t bytes) {
  void* memory = nullptr;
  const CudaScope scope(device);
  check(device, "allocating pinned memory of the host", cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return memory;
}
void release_pinned(void* memory) noexcept {
  use_one_in_use();
  forget_error(cudaFreeHost(memory));
}

// A thread that waits for the event sleeps: without cudaEventBlockingSync, CUDA may keep a core busy.
void* make_event(Cuda device) {
  cudaEvent_t event = nullptr;
  const CudaScope scope(device);
  check(device, "making an event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync));
  return event;
}
void release_event(void* event) noexcept {
  use_one_in_use();
  forget_error(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
}
bool is_done(Cuda device, void* event) {
  const cudaError_t state = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // it is no error
    return false;
  }
  check(device, "waiting for an event", state);
  return true;
}

void wait(Cuda device, void* event) {
  check(device, "waiting for an event", cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
}

void send(Cuda device, const void* from, void* to, size_t bytes, void* event) {
  const cudaStream_t copies = state_of(device).copies;
  const auto end = static_cast<cudaEvent_t>(event);
  check(device, "a copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies));
  cudaError_t error = cudaEventRecord(end, copies);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(stream(device), end, 0);
  if (error == cudaSuccess) return;
  cudaStreamSynchronize(copies);  // after an error the caller assumes that no copy is under way
  fail_with(device, "a copy", error);
}

void fetch(Cuda device, const void* from, void* to, size_t bytes, void* event) {
  const cudaStream_t fetches = state_of(device).fetches;
  const auto mark = static_cast<cudaEvent_t>(event);  // of what was started so far, then of the copy
  check(device, "recording an event", cudaEventRecord(mark, stream(device)));
  check(device, "waiting for an event", cudaStreamWaitEvent(fetches, mark, 0));
  if (bytes > 0) check(device, "a copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, fetches));
  const cudaError_t error = cudaEventRecord(mark, fetches);
  if (error == cudaSuccess) return;
  cudaStreamSynchronize(fetches);  // as in send()
  fail_with(device, "a copy", error);
}

void synchronize(Cuda device) {
  check(device, "waiting for the device", cudaStreamSynchronize(stream(device)));
}

DeviceMemory memory_of(Cuda device) {
  const CudaScope scope(device);
  return memory_with_pool(device);
}

void* stream_of(Cuda device) {
  return state_of(device).stream;
}

void allow_shared(Cuda device, const char* kernel, const void* function, size_t bytes) {
  constexpr size_t kAlways = 48u << 10;  // that every GPU gives without being asked
  if (bytes <= kAlways) return;
  int most = 0;
  check(device, "asking for its shared memory",
        cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  if (bytes > static_cast<size_t>(most)) refuse_shared(device, kernel, bytes, static_cast<size_t>(most));
  check(device, kernel,
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

void check_launch(Cuda device, const char* kernel) {
  last_kernel = kernel;
  check(device, kernel, cudaGetLastError());
  static const bool waits = environment_switch("ATTUNE_CUDA_WAIT");
  if (waits) check(device, kernel, cudaStreamSynchronize(stream(device)));
}

}  // namespace attune::cuda
