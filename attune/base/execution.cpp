#include "attune/base/execution.h"

#include "attune/base/interrupt.h"

namespace attune {
namespace {

constinit thread_local const Execution* current = nullptr;  // null: the defaults

}  // namespace

const Execution& execution() {
  static const Execution defaults;
  return current != nullptr ? *current : defaults;
}

void stop_if_unwanted() {
  if (const auto& unwanted = execution().unwanted; unwanted && unwanted()) throw Interrupted();
}

void ExecutionScope::begin() {
  outer_ = std::exchange(current, &execution_);
}

ExecutionScope::~ExecutionScope() {
  current = outer_;
}

}  // namespace attune
