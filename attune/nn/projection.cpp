#include "attune/nn/projection.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/linear_columns.h"
#include "attune/ops/panel_linear.h"
#include "attune/ops/precision.h"
#include "attune/ops/segment_linear.h"

namespace attune {
namespace {

constexpr size_t kMostFused = 3;

// Whether the products of x read panels: either all of them do or none.
bool takes_panels(const Tensor& x, Projections projections) {
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

// As products with panels read it.
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
  constexpr int64_t kRows = 256;
  CrossEntropyOptions of_piece = options;
  if (options.scale == 0) {
    const auto all = labels.values();
    const auto taking_part = std::ssize(all) - std::count(all.begin(), all.end(), options.ignore_index);
    of_piece.scale = 1.0 / static_cast<double>(std::max<int64_t>(taking_part, 1));
  }
  CrossEntropy sum{.loss = Tensor::zeros({}, {DType::f32, x.device()})};
  for (int64_t begin = 0; begin < x.size(0); begin += kRows) {
    const int64_t end = std::min(begin + kRows, x.size(0));
    const Tensor logits = project(x.rows(begin, end), projection);
    const CrossEntropy piece = cross_entropy(logits, labels.slice(begin, end), of_piece);
    add_in_place(sum.loss, piece.loss);
    sum.sum_negative_log_likelihood += piece.sum_negative_log_likelihood;
    sum.labels += piece.labels;
    sum.correct += piece.correct;
  }
  return sum;
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
  if (!options.dropout.active() && takes_panels(x, {&p}))
    return panel_linear(for_panels(x), *p.weight.panels, p.bias.tensor, options.activation);
  return linear(x, p.weight.tensor, p.bias.tensor, options);
}

Tensor project_fused(const Tensor& x, Projections projections) {
  if (takes_panels(x, projections)) {
    const auto parameters = panels_of(projections);
    return fused_panel_linear(for_panels(x), {parameters.data(), projections.size()});
  }
  std::array<LinearParameters, kMostFused> parameters;
  std::ranges::transform(projections, parameters.begin(), [](const Projection* p) {
    return LinearParameters{p->weight.tensor, p->bias.tensor};
  });
  return fused_linear(x, {parameters.data(), projections.size()});
}

std::array<Tensor, 3> project_each(const Tensor& x, Projections projections) {
  std::array<Tensor, 3> products;
  if (takes_panels(x, projections)) {
    const auto parameters = panels_of(projections);
    panel_linear_each(for_panels(x), {parameters.data(), projections.size()}, {products.data(), projections.size()});
    return products;
  }
  Tensor for_all;  // of those whose panels cannot be read together
  std::ranges::transform(projections, products.begin(), [&](const Projection* p) {
    if (!takes_panels(x, {p})) return linear(x, p->weight.tensor, p->bias.tensor);
    if (!for_all.defined()) for_all = for_panels(x);
    return panel_linear(for_all, *p->weight.panels, p->bias.tensor);
  });
  return products;
}

Tensor project_segments(const Tensor& x, std::span<const int64_t> offsets,
                        std::span<const Projection* const> projections, bool bf16_output) {
  // The weights of all segments are of one kind: what is true of the first that has panels is true of all.
  if (takes_panels(x, {projections.front()})) {
    std::vector<PanelParameters> parameters;
    for (const Projection* p : projections) parameters.push_back({p->weight.panels.get(), p->bias.tensor});
    return segment_panel_linear(for_panels(x), offsets, parameters);
  }
  std::vector<LinearParameters> parameters;
  for (const Projection* p : projections) parameters.push_back({p->weight.tensor, p->bias.tensor});
  return segment_linear(x, offsets, parameters, bf16_output);
}

// In a float32 tensor the numbers of an output are adjacent, in panels they are not. Both give the same bits.
Tensor project_columns(const Tensor& x, const Projection& p, std::span<const std::span<const int32_t>> columns) {
  const bool rows_lie_together = p.weight.tensor.defined() && p.weight.tensor.dtype() != DType::bf16 &&
                                 (!p.weight.panels || p.weight.panels->format() == WeightFormat::float32);
  if (rows_lie_together) return linear_columns(x, p.weight.tensor, p.bias.tensor, columns);
  return panel_linear_columns(for_panels(x), *p.weight.panels, p.bias.tensor, columns);
}

CrossEntropy projection_loss(const Tensor& x, const Projection& p, const Indices& labels,
                             const CrossEntropyOptions& options) {
  if (!p.weight.tensor.defined()) return panel_loss(x, p, labels, options);
  return linear_cross_entropy(x, p.weight.tensor, p.bias.tensor, labels, options);
}

}  // namespace attune
