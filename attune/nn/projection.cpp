#include "attune/nn/projection.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/activation.h"
#include "attune/ops/attention/concat_heads.h"
#include "attune/ops/gather.h"
#include "attune/ops/linear/linear_columns.h"
#include "attune/ops/linear/panel_linear.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/linear/segment_linear.h"
#include "attune/ops/residual.h"
#include "attune/ops/scale.h"

namespace attune {
namespace {

constexpr size_t kMostFused = 3;

// Whether the products of x read panels: either all of them do or none.
bool takes_panels(const Tensor& x, Projections projections) {
  if (std::ranges::any_of(projections, [](const Projection* p) { return p->weight.quantised != nullptr; }))
    return false;
  const PanelWeight* first = (*projections.begin())->weight.panels.get();
  const bool here = std::ranges::all_of(projections, [&](const Projection* p) {
    return p->weight.panels && read_one_input(*p->weight.panels, *first) &&
           !is_recording({x, p->weight.tensor, p->bias.tensor});
  });
  if (here && x.dtype() == DType::f32 && !bfloat16_products()) return true;
  const bool all_bfloat16 = here && std::ranges::all_of(projections, [](const Projection* p) {
                              return p->weight.panels->format() == WeightFormat::bfloat16;
                            });
  if (all_bfloat16) return true;
  for (const Projection* p : projections)
    if (!p->weight.tensor.defined())
      fail<ShapeError>(
          "linear: the weight [{}, {}] is there as panels alone, which record no gradient and take float32 inputs, in "
          "one form for all of a product; only bfloat16 panels take bfloat16",
          p->weight.panels->out(), p->weight.panels->in());
  return false;
}

// x as products with panels read it.
Tensor for_panels(const Tensor& x) {
  return bfloat16_products() ? to_bfloat16(x) : x;
}

std::array<PanelParameters, kMostFused> panels_of(Projections projections) {
  std::array<PanelParameters, kMostFused> parameters;
  std::ranges::transform(projections, parameters.begin(), [](const Projection* p) {
    return PanelParameters{p->weight.panels.get(), p->bias.tensor};
  });
  return parameters;
}

// The loss for a weight that has only panels: from the same logits as in decoding, kRows rows at a time.
CrossEntropy panel_loss(const Tensor& x, const Projection& projection, const Indices& labels,
                        const CrossEntropyOptions& options) {
  if (options.r_drop > 0) return cross_entropy(project(x, projection), labels, options);  // pairs span pieces
  constexpr int64_t kRows = 256;
  CrossEntropyOptions of_piece = options;
  of_piece.scale = loss_scale(labels, options);
  const auto zero = [&](DType dtype) { return Tensor::zeros({}, {dtype, x.device()}); };
  CrossEntropy sum{
      .loss = zero(DType::f32), .sum_negative_log_likelihood = zero(DType::f64), .correct = zero(DType::f64)};
  for (int64_t begin = 0; begin < x.size(0); begin += kRows) {
    const int64_t end = std::min(begin + kRows, x.size(0));
    const Tensor logits = project(x.rows(begin, end), projection);
    const CrossEntropy piece = cross_entropy(logits, labels.slice(begin, end), of_piece);
    add_in_place(sum.loss, piece.loss);
    add_in_place(sum.sum_negative_log_likelihood, piece.sum_negative_log_likelihood);
    add_in_place(sum.correct, piece.correct);
    sum.labels += piece.labels;
  }
  return sum;
}

LinearParameters parameters_of(const Projection& p) {
  return {.weight = p.weight.tensor, .bias = p.bias.tensor, .quantised = p.weight.quantised};
}

Tensor product(const Tensor& x, Projections projections, bool bf16_output) {
  std::array<LinearParameters, kMostFused> parameters;
  std::ranges::transform(projections, parameters.begin(), [](const Projection* p) { return parameters_of(*p); });
  return fused_linear(x, {parameters.data(), projections.size()}, bf16_output);
}

Tensor without_adapter(const Tensor& x, const Projection& p, const LinearOptions& options) {
  if (!options.dropout.active() && takes_panels(x, {&p}))
    return panel_linear(for_panels(x), *p.weight.panels, p.bias.tensor, options.activation);
  return linear(x, parameters_of(p), options);
}

// a [n, p] beside b [n, q]; a may be undefined        -> [n, p + q]
Tensor beside(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  const Tensor both = concat_heads(a.reshape({a.size(0), 1, a.size(1)}), b.reshape({b.size(0), 1, b.size(1)}));
  return both.reshape({a.size(0), a.size(1) + b.size(1)});
}

Tensor zeros_like(int64_t rows, int64_t columns, const Tensor& x) {
  return Tensor::zeros({rows, columns}, {x.dtype(), x.device()});
}

bool has_adapter(std::span<const Projection* const> projections) {
  return std::ranges::any_of(projections, [](const Projection* p) { return p->adapter->there(); });
}

bool adds(const Projection* p) {
  return p->adapter->there() || p->adapter->is_chosen();
}

int64_t out_of(const Projection& p) {
  return shape_of(p.weight)[0];
}

// What the adapters add, as one product of their reduced inputs, side by side: the B of each has zeros in the columns
// of the others.        x [..., in] -> [..., sum of out]
Tensor added_by_adapters(const Tensor& x, Projections projections) {
  const Tensor rows = x.reshape({-1, x.size(-1)});
  Tensor reduced;
  int64_t all = 0;
  for (const Projection* p : projections) {
    if (!p->adapter->there()) continue;
    reduced = beside(reduced, p->adapter->down(rows));
    all += p->adapter->rank();
  }
  std::array<LinearParameters, kMostFused> up;
  int64_t before = 0;
  std::ranges::transform(projections, up.begin(), [&](const Projection* p) {
    const int64_t out = out_of(*p), own = p->adapter->there() ? p->adapter->rank() : 0;
    Tensor weight;
    if (before > 0 || own == 0) weight = zeros_like(out, own == 0 ? all : before, reduced);
    if (own > 0) weight = beside(weight, p->adapter->b());
    before += own;
    if (own > 0 && before < all) weight = beside(weight, zeros_like(out, all - before, reduced));
    return LinearParameters{.weight = weight, .bias = {}};
  });
  const ExecutionScope once([](Execution& e) { e.bfloat16_copies.reset(); });  // these weights are for this product
  return fused_linear(reduced, {up.data(), projections.size()});
}

// What those adapters add that the rows of x have chosen.        x [..., in] -> [rows, sum of out]
Tensor added_by_choice(const Tensor& x, Projections projections) {
  const AdapterRows& rows = *execution().adapter_rows;
  const Tensor all = to_float32(x.reshape({-1, x.size(-1)}));
  if (all.size(0) != rows.rows())
    fail<ShapeError>("projection: {} rows where {} have adapters to choose from", all.size(0), rows.rows());
  const Tensor sorted = gather(all, rows.sorted());
  Tensor added;
  for (const Projection* p : projections)
    added = beside(added, p->adapter->is_chosen() ? p->adapter->chosen(sorted, rows, out_of(*p))
                                                  : zeros_like(sorted.size(0), out_of(*p), sorted));
  return gather(added, rows.places());
}

// y, float32, with what the adapters of the projections add to it.
Tensor adapted(const Tensor& y, const Tensor& x, Projections projections) {
  if (std::ranges::none_of(projections, adds)) return y;
  const bool chosen = std::ranges::any_of(projections, [](const Projection* p) { return p->adapter->is_chosen(); });
  const std::vector<int64_t> shape(y.shape().begin(), y.shape().end());
  const Tensor added = chosen ? added_by_choice(x, projections) : added_by_adapters(x, projections);
  return residual_dropout(y, added.reshape(shape));
}

// What adapters add to segments of rows; a projection without one gets A and B of zeros.
Tensor added_to_segments(const Tensor& x, std::span<const int64_t> offsets,
                         std::span<const Projection* const> projections) {
  const auto found = std::ranges::find_if(projections, [](const Projection* p) { return p->adapter->there(); });
  const Adapter& first = *(*found)->adapter;
  std::vector<LinearParameters> down, up;
  for (const Projection* p : projections) {
    const Adapter& own = *p->adapter;
    if (own.there() && (own.rank() != first.rank() || own.scale() != first.scale()))
      fail<ShapeError>("adapters of experts: one has rank {} and scale {}, another {} and {}", first.rank(),
                       first.scale(), own.rank(), own.scale());
    down.push_back({.weight = own.there() ? own.a() : Tensor::zeros_like(first.a()), .bias = {}});
    up.push_back({.weight = own.there() ? own.b() : Tensor::zeros_like(first.b()), .bias = {}});
  }
  const Tensor reduced = scaled(segment_linear(first.dropped(x), offsets, down), first.scale());
  return segment_linear(reduced, offsets, up);
}

}  // namespace

Projection new_projection(int64_t in, int64_t out, bool bias) {
  return {.weight = {.tensor = new_parameter({out, in}), .use = ParameterUse::product},
          .bias = {.tensor = bias ? new_parameter({out}) : Tensor{}}};
}

std::vector<Projection> new_adjacent_projections(int64_t in, std::initializer_list<int64_t> outs, bool bias) {
  int64_t row = 0;
  for (const int64_t out : outs) row += out;
  const Projection all = new_projection(in, row, bias);
  std::vector<Projection> projections;
  row = 0;
  for (const int64_t out : outs) {
    projections.push_back({.weight = {.tensor = all.weight.tensor.rows(row, row + out), .use = ParameterUse::product},
                           .bias = {.tensor = bias ? all.bias.tensor.rows(row, row + out) : Tensor{}}});
    row += out;
  }
  return projections;
}

Tensor project(const Tensor& x, const Projection& p, const LinearOptions& options) {
  if (!adds(&p)) return without_adapter(x, p, options);
  const Tensor y = activated(adapted(without_adapter(x, p, {}), x, {&p}), options.activation);
  return options.dropout.active() ? dropout(y, options.dropout) : y;
}

Tensor project_fused(const Tensor& x, Projections projections, bool bf16_output) {
  if (takes_panels(x, projections)) {
    const auto parameters = panels_of(projections);
    return adapted(fused_panel_linear(for_panels(x), {parameters.data(), projections.size()}), x, projections);
  }
  const bool any = std::ranges::any_of(projections, adds);
  return adapted(product(x, projections, bf16_output && !any), x, projections);
}

std::array<Tensor, 3> project_each(const Tensor& x, Projections projections) {
  std::array<Tensor, 3> products;
  if (takes_panels(x, projections)) {
    const auto parameters = panels_of(projections);
    panel_linear_each(for_panels(x), {parameters.data(), projections.size()}, {products.data(), projections.size()});
    size_t next = 0;
    for (const Projection* p : projections) {
      products[next] = adapted(products[next], x, {p});
      ++next;
    }
    return products;
  }
  Tensor for_all;  // x for panels, converted once: these panels cannot be read together
  std::ranges::transform(projections, products.begin(), [&](const Projection* p) {
    if (!takes_panels(x, {p})) return adapted(without_adapter(x, *p, {}), x, {p});
    if (!for_all.defined()) for_all = for_panels(x);
    return adapted(panel_linear(for_all, *p->weight.panels, p->bias.tensor), x, {p});
  });
  return products;
}

Tensor project_segments(const Tensor& x, std::span<const int64_t> offsets,
                        std::span<const Projection* const> projections, bool bf16_output) {
  const bool any = has_adapter(projections);
  const auto with_adapters = [&](const Tensor& y) {
    return any ? residual_dropout(y, added_to_segments(x, offsets, projections)) : y;
  };
  // All segments have weights of one kind: what holds for the first holds for all.
  if (takes_panels(x, {projections.front()})) {
    std::vector<PanelParameters> parameters;
    for (const Projection* p : projections) parameters.push_back({p->weight.panels.get(), p->bias.tensor});
    return with_adapters(segment_panel_linear(for_panels(x), offsets, parameters));
  }
  std::vector<LinearParameters> parameters;
  for (const Projection* p : projections) parameters.push_back(parameters_of(*p));
  return with_adapters(segment_linear(x, offsets, parameters, bf16_output && !any));
}

// In float32 both give the same bits. The tensor is faster: the numbers of one column are adjacent in it, not in
// panels.
Tensor project_columns(const Tensor& x, const Projection& p, std::span<const std::span<const int32_t>> columns) {
  const auto& panels = p.weight.panels;
  const Tensor& tensor = p.weight.tensor;
  const bool both_float32 =
      panels && panels->format() == WeightFormat::float32 && tensor.defined() && tensor.dtype() == DType::f32;
  const Tensor y = !panels || both_float32 ? linear_columns(x, tensor, p.bias.tensor, columns)
                                           : panel_linear_columns(for_panels(x), *panels, p.bias.tensor, columns);
  if (!p.adapter->there()) return y;
  return residual_dropout(y, linear_columns(p.adapter->down(x), p.adapter->b(), {}, columns));
}

CrossEntropy projection_loss(const Tensor& x, const Projection& p, const Indices& labels,
                             const CrossEntropyOptions& options) {
  if (p.adapter->there()) return cross_entropy(project(x, p), labels, options);
  if (p.weight.panels && !p.weight.tensor.defined()) return panel_loss(x, p, labels, options);
  const LinearParameters parameters = parameters_of(p);
  if (parameters.quantised == nullptr)
    return linear_cross_entropy(x, parameters.weight, parameters.bias, labels, options);
  const ExecutionScope once([](Execution& e) { e.bfloat16_copies.reset(); });  // what is widened is for this product
  return linear_cross_entropy(x, weight_of(parameters, x.dtype()), parameters.bias, labels, options);
}

}  // namespace attune
