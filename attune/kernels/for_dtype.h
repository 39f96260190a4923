#pragma once
// Calls a function template with the element type of a dtype.

#include <cstdint>
#include <string_view>
#include <utility>

#include "attune/tensor/dtype.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Calls f with a value of the element type of `dtype`.
template <class F>
decltype(auto) for_any_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::bf16:
      break;
  }
  return f(bfloat16{});
}

/// Calls f with float{}, double{} or bfloat16{}, the types of activations. Throws ShapeError, naming the operation, for
/// other types.
template <class F>
decltype(auto) for_storage_dtype(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(bfloat16{});
  return dispatch_floating(op, dtype, std::forward<F>(f));
}

/// The values of a tensor, or null if it is undefined.
template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

}  // namespace attune
