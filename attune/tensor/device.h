#pragma once
// Where data lives. A kernel takes its device as its first argument; `dispatch` (dispatch.h) selects the overload.

#include <cstdint>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] attune {

/// The processor that the program runs on.
struct Cpu {
  bool operator==(const Cpu&) const = default;
};

/// A device for tests. It is the specification of all others: its kernels are simple loops. The host cannot read its
/// memory while none of its kernels runs (see plain_memory.h).
struct Plain {
  bool operator==(const Plain&) const = default;
};

/// A GPU of NVIDIA, by its number on this machine. Only a build with CUDA has its kernels (docs/cuda.md).
struct Cuda {
  int index = 0;
  bool operator==(const Cuda&) const = default;
};

class Device {
 public:
  enum class Kind : uint8_t { cpu, plain, cuda };

  Device() = default;                                               // the CPU
  Device(Cpu) {}                                                    // NOLINT: a kernel's device is a device
  Device(Plain) : kind_(Kind::plain) {}                             // NOLINT
  Device(Cuda device) : kind_(Kind::cuda), index_(device.index) {}  // NOLINT
  /// The device with this name: "cpu", "cuda" (the first GPU) or "cuda:N". Throws ConfigError for another name, and
  /// DeviceError, which says what is missing, if the device cannot be used.
  static Device named(std::string_view name);
  /// The same, without asking whether the device can be used: throws ConfigError alone.
  static Device of_name(std::string_view name);

  Kind kind() const { return kind_; }
  /// The number of the GPU; 0 for other devices.
  int index() const { return index_; }
  /// Whether the host reads and writes this memory with plain pointers.
  bool is_host() const { return kind_ == Kind::cpu; }
  /// Returns the name of the device, as errors have it: "cpu", "plain" or "cuda:0".
  std::string text() const;
  bool operator==(const Device&) const = default;

 private:
  Kind kind_ = Kind::cpu;
  int index_ = 0;
};

/// While this object lives, the host can access the memory of the plain device. May be nested.
class PlainAccess {
 public:
  PlainAccess();
  ~PlainAccess();
  PlainAccess(const PlainAccess&) = delete;
  PlainAccess& operator=(const PlainAccess&) = delete;
};

}  // namespace attune
