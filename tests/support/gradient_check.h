#pragma once
// Gradients against finite differences, and tensors of random numbers to check them on.

#include <functional>
#include <vector>

#include "attune/base/error.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace attune {

struct RandomOptions {
  DType dtype = DType::f64;
  uint64_t seed = 0;
  double mean = 0;
  double deviation = 1;
};

/// Independent normally distributed elements.
Tensor normal(const Shape& shape, const RandomOptions& options = {});

/// Independent int32 elements, uniform in [0, bound).
Indices uniform_ids(int64_t n, int32_t bound, uint64_t seed = 0);

/// LargestError::relative() of two tensors of one shape: NaN where one of them has a NaN.
double relative_error(const Tensor& found, const Tensor& expected);

/// Whether all bits are the same.
bool same_bits(const Tensor& a, const Tensor& b);

namespace detail {
double gradient_error(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs);
}

/// The gradients that backward() gives for sum(f(inputs) * a random cotangent) against central finite differences, for
/// every element of every float64 input: the largest difference, relative to the largest gradient of that input; NaN
/// where a gradient has a NaN.
template <class F>
double gradient_error(F&& f, const std::vector<Tensor>& inputs) {
  return detail::gradient_error(std::forward<F>(f), inputs);
}

/// The same for a function of one tensor.
template <class F>
double gradient_error(F&& f, const Tensor& x) {
  return detail::gradient_error([&](const std::vector<Tensor>& t) { return f(t[0]); }, {x});
}

}  // namespace attune
