#pragma once
// Element types.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "attune/base/error.h"

namespace attune {

enum class DType { f32, f64, i32, i64, u8 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
    case DType::u8:
      return "uint8";
  }
  return "?";
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

/// Calls f(float{}) or f(double{}); anything else is a ShapeError that names the operation.
template <class F>
decltype(auto) dispatch_floating(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  fail<ShapeError>("{}: needs float32 or float64, found {}", op, name_of(dtype));
}

}  // namespace attune
