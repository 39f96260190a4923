#pragma once
// Long work that a caller can end from another thread or from a signal handler.

#include <atomic>
#include <exception>

namespace [[gnu::visibility("default")]] attune {

/// Thrown by work that was asked to stop. It is no Error: nothing is wrong.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

/// Throws Interrupted once the flag is true; null: never.
inline void check_interrupt(const std::atomic<bool>* interrupt) {
  if (interrupt != nullptr && interrupt->load()) throw Interrupted();
}

}  // namespace attune
