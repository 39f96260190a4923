#include "tests/support/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

double weighted_sum(const Tensor& y, const Tensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < y.numel(); ++i) sum += y.data<double>()[i] * weights.data<double>()[i];
  return sum;
}

}  // namespace

Tensor normal(const Shape& shape, const RandomOptions& options) {
  Random random(options.seed, 0x6E6F726D);
  Tensor x = Tensor::empty(shape, {.dtype = DType::f64});
  for (double& v : x.values<double>()) v = options.mean + options.deviation * random.normal();
  return x.to(options.dtype);
}

Indices uniform_ids(int64_t n, int32_t bound, uint64_t seed) {
  Random random(seed, 0x696473);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(bound)));
  return ids;
}

double relative_error(const Tensor& found, const Tensor& expected) {
  if (found.shape() != expected.shape())
    fail<ShapeError>("relative_error: {} and {}", found.shape().text(), expected.shape().text());
  const Tensor a = found.to(Cpu{}).to(DType::f64);
  const Tensor b = expected.to(Cpu{}).to(DType::f64);
  LargestError error;
  for (int64_t i = 0; i < a.numel(); ++i) error.add(a.data<double>()[i], b.data<double>()[i]);
  return error.relative();
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

double detail::gradient_error(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                              const std::vector<Tensor>& inputs) {
  std::vector<Tensor> tracked;
  for (const Tensor& input : inputs) {
    tracked.push_back(input.clone());
    if (input.dtype() == DType::f64) require_gradient(tracked.back());
  }
  const Tensor y = f(tracked);
  const Tensor cotangent = normal(y.shape(), {.seed = 99});
  backward(y, cotangent);

  const NoGrad no_grad;
  double worst = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].dtype() != DType::f64) continue;
    const Tensor found = gradient(tracked[k]);
    if (!found.defined()) return INFINITY;
    std::vector<Tensor> moved = inputs;
    moved[k] = inputs[k].clone();
    const Tensor expected = Tensor::empty_like(inputs[k]);
    for (int64_t i = 0; i < inputs[k].numel(); ++i) {
      double& element = moved[k].data<double>()[i];
      const double old = element;
      const double step = 1e-5 * std::max(1.0, std::abs(old));
      element = old + step;
      const double above = weighted_sum(f(moved), cotangent);
      element = old - step;
      const double below = weighted_sum(f(moved), cotangent);
      element = old;
      expected.data<double>()[i] = (above - below) / (2 * step);
    }
    worst = larger_error(worst, relative_error(found, expected));
  }
  return worst;
}

}  // namespace attune
