#pragma once
// Where data lives. A kernel takes its device as first argument; `dispatch` picks the overload.

#include <utility>

namespace [[gnu::visibility("default")]] attune {

struct Cpu {
  bool operator==(const Cpu&) const = default;
};

class Device {
 public:
  Device() = default;  // the CPU
  Device(Cpu) {}       // NOLINT: a kernel's device is a device
  bool operator==(const Device&) const = default;
};

/// Calls f with the device's own type, so that overloads like softmax_forward(Cpu, ...) are chosen.
template <class F>
decltype(auto) dispatch(const Device&, F&& f) {
  return std::forward<F>(f)(Cpu{});
}

}  // namespace attune
