#pragma once
// Where data lives. A kernel takes its device as first argument; `dispatch` picks the overload.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace [[gnu::visibility("default")]] attune {

/// The processor that the program runs on.
struct Cpu {
  bool operator==(const Cpu&) const = default;
};

/// A device for tests and the specification of all others: its kernels are simple loops, and the host cannot read its
/// memory while none of them runs (see plain_memory.h).
struct Plain {
  bool operator==(const Plain&) const = default;
};

class Device {
 public:
  enum class Kind : uint8_t { cpu, plain };

  Device() = default;                    // the CPU
  Device(Cpu) {}                         // NOLINT: a kernel's device is a device
  Device(Plain) : kind_(Kind::plain) {}  // NOLINT
  /// "cpu" or "plain". Throws ConfigError naming what it knows.
  static Device parse(std::string_view text);

  Kind kind() const { return kind_; }
  /// Whether the host reads and writes this memory with plain pointers.
  bool is_host() const { return kind_ == Kind::cpu; }
  std::string text() const;
  bool operator==(const Device&) const = default;

 private:
  Kind kind_ = Kind::cpu;
};

/// While one lives, the memory of the plain device is accessible; they may be nested.
class PlainAccess {
 public:
  PlainAccess();
  ~PlainAccess();
  PlainAccess(const PlainAccess&) = delete;
  PlainAccess& operator=(const PlainAccess&) = delete;
};

/// Calls f with the device's own type, so that overloads like softmax_forward(Cpu, ...) are chosen. An operation does
/// this at its outermost point: what f calls runs on the device as a whole.
template <class F>
decltype(auto) dispatch(const Device& device, F&& f) {
  if (device.is_host()) return std::forward<F>(f)(Cpu{});
  const PlainAccess access;
  return std::forward<F>(f)(Plain{});
}

}  // namespace attune
