#pragma once
// Kernels that Highway compiles under one name for float and another one for double, some also for bfloat16.

#include <type_traits>

#include "attune/tensor/dtype.h"

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

/// The same, chosen by the type Out that is written: T, or bfloat16 where T is float.
template <class T, class Out, class OfFloat, class OfDouble, class OfBfloat16>
auto for_types(OfFloat* of_float, OfDouble* of_double, [[maybe_unused]] OfBfloat16* of_bfloat16) {
  if constexpr (std::is_same_v<Out, bfloat16>) {
    static_assert(std::is_same_v<T, float>);
    return of_bfloat16;
  } else {
    static_assert(std::is_same_v<T, Out>);
    return for_type<T>(of_float, of_double);
  }
}

}  // namespace attune
