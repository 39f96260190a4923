#pragma once

#include <cstddef>
#include <new>

namespace attune {

/// A std::bad_alloc that says how much was asked for.
class OutOfMemory final : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const { return bytes_; }
  const char* what() const noexcept override { return "out of memory"; }

 private:
  size_t bytes_;
};

}  // namespace attune
