#pragma once

#include <fmt/core.h>

#include <utility>

#include "attune/base/error.h"

namespace attune {

/// Throws `E` with a formatted message: fail<ShapeError>("softmax: rank {} is below 1", rank).
template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace attune
