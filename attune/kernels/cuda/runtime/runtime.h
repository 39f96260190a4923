#pragma once
// What kernels/cuda asks of the driver and its runtime library. runtime_gpu.cpp is the real one; runtime_emulated.cpp
// serves tests on machines without a GPU. Every device has one stream for its work: what is started on it runs in that
// order, and memory that is given back may be used by what is started next. Only send(), fetch() and the streams of
// streams.h run beside it.

#include <array>
#include <cstddef>
#include <string_view>

#include "attune/tensor/device.h"

namespace attune::cuda {

/// Throws DeviceError, which says what is missing, unless this GPU can be used.
void check_device(Cuda device);

/// The number of GPUs. Takes no memory of them. Throws DeviceError where there is no driver.
int device_count();
/// Throws DeviceError: the process sees only `count` GPUs.
[[noreturn]] void refuse_missing(Cuda device, int count);

/// An identifier that no other GPU has, on this machine or another.
std::array<std::byte, 16> identity_of(Cuda device);

/// Makes the device current for this thread. Returns the number of the one that was.
int use(Cuda device);
/// Makes device `index` current again. Does nothing if the process does not use that device: this would take memory
/// there.
void use_again(int index) noexcept;

/// Uninitialised memory, aligned to 256 bytes. Throws DeviceOutOfMemory.
void* allocate(Cuda device, size_t bytes);
void release(Cuda device, void* memory) noexcept;

// Copies in the device's stream. copy_to_host() waits for the end. copy_from_host() may return earlier, but has read
// `from` by then.
void copy_from_host(Cuda device, const void* from, void* to, size_t bytes);
void copy_to_host(Cuda device, const void* from, void* to, size_t bytes);
void copy_on_device(Cuda device, const void* from, void* to, size_t bytes);
void clear(Cuda device, void* memory, size_t bytes);

/// Memory of the host that the device reads and writes by itself, so that a copy goes on while both do other work.
/// Throws DeviceError.
void* allocate_pinned(Cuda device, size_t bytes);
void release_pinned(void* memory) noexcept;

/// An event tells when a copy has ended. One that no copy was started with counts as done. Throws DeviceError.
void* make_event(Cuda device);
void release_event(void* event) noexcept;
bool is_done(Cuda device, void* event);
/// Waits for this event and no more; the thread sleeps meanwhile. Throws DeviceError.
void wait(Cuda device, void* event);

/// As allocate(), but for send(): it can be written before the work that was started on the device is done.
void* allocate_for_sending(Cuda device, size_t bytes);
/// Starts a copy from pinned memory, beside the work of the device. `to` is memory of allocate_for_sending(), or other
/// memory of the device that no work uses any more. What is started on the device later waits for the copy. `from` has
/// to stay as it is until `event` is done.
void send(Cuda device, const void* from, void* to, size_t bytes, void* event);
/// Starts a copy to pinned memory, after everything that was started on the device before and beside what is started
/// there later. Until `event` is done, nothing may change `from` or touch `to`. Where the memory of the host is not
/// pinned, this and send() may return only when the copy has ended.
void fetch(Cuda device, const void* from, void* to, size_t bytes, void* event);

/// Waits for everything that was started on the device. Throws DeviceError if a kernel failed.
void synchronize(Cuda device);

struct DeviceMemory {
  size_t free;   // bytes, including those that were given back and are kept for later requests
  size_t total;  // bytes
  size_t peak;   // the most bytes that this process has had in use
};
DeviceMemory memory_of(Cuda device);

/// The device's stream, a cudaStream_t. It is a plain pointer here, so that this header needs none of CUDA's.
void* stream_of(Cuda device);

/// Throws DeviceError if the last launch of a kernel failed. `kernel` is remembered for later errors, which the driver
/// reports without a name.
void check_launch(Cuda device, const char* kernel);

/// Throws DeviceError for more threads in a block than the kernel is compiled for, or more blocks than a GPU takes.
void check_shape(Cuda device, const char* kernel, int64_t blocks, int threads, int most_threads);

/// Lets each block of a kernel have `bytes` of shared memory. `function` is what CUDA launches, null in the emulation.
/// Throws DeviceError, which names both numbers, where the device has less.
void allow_shared(Cuda device, const char* kernel, const void* function, size_t bytes);
[[noreturn]] void refuse_shared(Cuda device, const char* kernel, size_t bytes, size_t most);

}  // namespace attune::cuda
