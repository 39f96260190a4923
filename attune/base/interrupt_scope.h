#pragma once
// Long work that ends where it may, once nobody wants its result.

#include <functional>

namespace attune {

/// While it lives, check_interrupt_scope() on its thread asks `unwanted`. The innermost scope of a thread counts. The
/// scopes of a thread must end in the reverse order of their construction.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<bool()> unwanted);
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope();

 private:
  friend void check_interrupt_scope();
  const std::function<bool()> unwanted_;
  const InterruptScope* const outer_;
};

/// Throws Interrupted (base/interrupt.h) where the scope of the calling thread says that the work is unwanted. A model
/// calls it between its layers.
void check_interrupt_scope();

}  // namespace attune
