#pragma once
// Checks of configured numbers.

#include <string_view>
#include <type_traits>

#include "attune/base/fail.h"

namespace attune {

/// Throws ConfigError, naming the field, the value and the range, unless least <= value <= most; also for NaN.
template <class T>
void check_range(std::string_view field, T value, std::type_identity_t<T> least, std::type_identity_t<T> most) {
  if (!(value >= least && value <= most))
    fail<ConfigError>("{} = {}: needs a number from {} to {}", field, value, least, most);
}

/// The same without an upper bound.
template <class T>
void check_least(std::string_view field, T value, std::type_identity_t<T> least) {
  if (!(value >= least)) fail<ConfigError>("{} = {}: needs a number from {}", field, value, least);
}

/// The same for a probability or a decay: throws unless 0 <= value < 1.
inline void check_below_one(std::string_view field, double value) {
  if (!(value >= 0 && value < 1)) fail<ConfigError>("{} = {}: needs a number from 0 to below 1", field, value);
}

}  // namespace attune
