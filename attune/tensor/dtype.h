#pragma once
// Element types.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace [[gnu::visibility("default")]] attune {

enum class DType { f32, f64, i32, i64, u8, bf16 };

/// The upper half of a float: its range with 8 bits of precision. Arithmetic is done in float32.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
  template <class T>
  requires std::convertible_to<T, float>
  constexpr explicit bfloat16(T value) : bits(rounded(static_cast<float>(value))) {}
  constexpr operator float() const {  // NOLINT: exact
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

 private:
  static constexpr uint16_t rounded(float value) {
    const auto whole = std::bit_cast<uint32_t>(value);
    if ((whole & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(whole >> 16 | 0x40u);
    return static_cast<uint16_t>((whole + 0x7fffu + (whole >> 16 & 1u)) >> 16);
  }
};

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
    case DType::bf16:
      return 2;
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
    case DType::bf16:
      return "bfloat16";
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
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bf16;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

constexpr bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

/// Throws ShapeError: operation `op` needs float32 or float64, not `dtype`.
[[noreturn]] void refuse_dtype(std::string_view op, DType dtype);

/// Calls f(float{}) or f(double{}), the types of parameters. Throws ShapeError, naming the operation, for other types.
template <class F>
decltype(auto) dispatch_floating(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  refuse_dtype(op, dtype);
}

}  // namespace attune
