#include "attune/nn/adapter.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/linear.h"
#include "attune/ops/matmul.h"
#include "attune/ops/scale.h"

namespace attune {

void Adapter::set(Tensor a, Tensor b, double scale, double dropout) {
  if (a.rank() != 2 || b.rank() != 2 || a.size(0) != b.size(1))
    fail<ShapeError>("adapter: A {} and B {} have no common rank", a.shape().text(), b.shape().text());
  a_ = {.tensor = std::move(a)};
  b_ = {.tensor = std::move(b)};
  scale_ = scale;
  dropout_.set_probability(dropout);
}

void Adapter::remove() {
  a_ = b_ = {};
}

Tensor Adapter::down(const Tensor& x) const {
  return scaled(linear(dropped(x), a_.tensor), scale_);
}

Tensor Adapter::product() const {
  const NoGrad no_grad;
  return scaled(matmul(b_.tensor, a_.tensor), scale_);
}

void Adapter::visit(Visitor& v) {
  if (!there()) return;
  v("a", a_);
  v("b", b_);
  v("dropout", dropout_);
}

}  // namespace attune
