#pragma once
// Kernels that Highway compiles under one name for float and another one for double.

#include <type_traits>

namespace attune {

/// Returns the function for T, which is float or double:
///   for_type<T>(HWY_DYNAMIC_DISPATCH(Kernel32), HWY_DYNAMIC_DISPATCH(Kernel64))(x, y);
template <class T, class OfFloat, class OfDouble>
auto for_type(OfFloat* of_float, [[maybe_unused]] OfDouble* of_double) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  if constexpr (std::is_same_v<T, float>) {
    return of_float;
  } else {
    return of_double;
  }
}

}  // namespace attune
