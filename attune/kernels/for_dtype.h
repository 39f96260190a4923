#pragma once
// From a dtype to the type that a kernel is compiled for.

#include <cstdint>
#include <string_view>
#include <utility>

#include "attune/tensor/dtype.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Calls f with a value of the element type.
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

/// Calls f with float{}, double{} or bfloat16{}: the types of activations. Throws ShapeError for others, naming the
/// operation.
template <class F>
decltype(auto) for_storage_dtype(std::string_view op, DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(bfloat16{});
  return dispatch_floating(op, dtype, std::forward<F>(f));
}

/// The values of a tensor that may be undefined: null then.
template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

}  // namespace attune
