#pragma once
// Where data lives. A kernel takes its device as its first argument; `dispatch` selects the overload.

#include <cstdint>
#include <string>
#include <utility>

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

class Device {
 public:
  enum class Kind : uint8_t { cpu, plain };

  Device() = default;                    // the CPU
  Device(Cpu) {}                         // NOLINT: a kernel's device is a device
  Device(Plain) : kind_(Kind::plain) {}  // NOLINT

  Kind kind() const { return kind_; }
  /// Whether the host reads and writes this memory with plain pointers.
  bool is_host() const { return kind_ == Kind::cpu; }
  /// Returns the name of the device, as errors have it: "cpu" or "plain".
  std::string text() const;
  bool operator==(const Device&) const = default;

 private:
  Kind kind_ = Kind::cpu;
};

/// While this object lives, the host can access the memory of the plain device. May be nested.
class PlainAccess {
 public:
  PlainAccess();
  ~PlainAccess();
  PlainAccess(const PlainAccess&) = delete;
  PlainAccess& operator=(const PlainAccess&) = delete;
};

/// Calls f with the device's own type, which selects overloads like softmax_forward(Cpu, ...). An operation calls this
/// at its outermost point: everything in f runs on the device.
template <class F>
decltype(auto) dispatch(const Device& device, F&& f) {
  switch (device.kind()) {
    case Device::Kind::cpu:
      return std::forward<F>(f)(Cpu{});
    case Device::Kind::plain:
      break;
  }
  const PlainAccess access;
  return std::forward<F>(f)(Plain{});
}

}  // namespace attune
