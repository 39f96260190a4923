#include "attune/nn/adapters/adapter.h"

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/matmul.h"
#include "attune/ops/linear/panel_linear.h"
#include "attune/ops/scale.h"

namespace attune {
namespace {

void check_rank(const Tensor& a, const Tensor& b) {
  if (a.rank() != 2 || b.rank() != 2 || a.size(0) != b.size(1))
    fail<ShapeError>("adapter: A {} and B {} have no common rank", a.shape().text(), b.shape().text());
}

}  // namespace

void Adapter::set(Tensor a, Tensor b, double scale, double dropout) {
  check_rank(a, b);
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

void Adapter::add_choice(int32_t number, const Tensor& a, const Tensor& b, double scale) {
  check_rank(a, b);
  const NoGrad no_grad;
  const auto place = static_cast<size_t>(number);
  if (place >= choices_.size()) choices_.resize(place + 1);
  const auto panels = [](const Tensor& x) {
    return std::make_shared<const PanelWeight>(PanelWeight::lay_out(x, WeightFormat::float32));
  };
  choices_[place] = {.a = panels(a), .b = panels(scaled(b, scale))};
}

Tensor Adapter::chosen(const Tensor& x, const AdapterRows& rows, int64_t out) const {
  Tensor sum = Tensor::zeros({x.size(0), out}, {x.dtype(), x.device()});
  for (const AdapterRows::Segment& s : rows.segments()) {
    const auto number = static_cast<size_t>(s.adapter);
    if (number >= choices_.size() || choices_[number].a == nullptr) continue;
    const Tensor reduced = panel_linear(x.rows(s.begin, s.end), *choices_[number].a, {});
    sum.rows(s.begin, s.end).copy_from(panel_linear(reduced, *choices_[number].b, {}));
  }
  return sum;
}

void Adapter::visit(Visitor& v) {
  if (!there()) return;
  v("a", a_);
  v("b", b_);
  v("dropout", dropout_);
}

}  // namespace attune
