#include "attune/base/interrupt_scope.h"

#include <utility>

#include "attune/base/interrupt.h"

namespace attune {
namespace {

constinit thread_local const InterruptScope* innermost = nullptr;

}  // namespace

InterruptScope::InterruptScope(std::function<bool()> unwanted) : unwanted_(std::move(unwanted)), outer_(innermost) {
  innermost = this;
}

InterruptScope::~InterruptScope() {
  innermost = outer_;
}

void check_interrupt_scope() {
  if (innermost != nullptr && innermost->unwanted_()) throw Interrupted();
}

}  // namespace attune
