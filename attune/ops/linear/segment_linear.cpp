#include "attune/ops/linear/segment_linear.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/gemm/linear_gradient.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/ops/linear/linear_check.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

// Rows [begin, end) and what they are multiplied with.
struct Segment {
  int64_t begin, end;
  LinearParameters parameters;  // as the product reads them
  bool needs_weight, needs_bias;
};

struct SegmentTape {
  Tensor x;      // as the products read it
  DType x_type;  // of the input
  bool needs_x;
  std::vector<Segment> segments;  // that have rows
};

int64_t out_of(const LinearParameters& p) {
  return p.quantised ? p.quantised->out() : p.weight.size(0);
}

// The weight as the product with x reads it. A quantised one is widened, for this product alone.
Tensor read_weight(const Tensor& x, const LinearParameters& p) {
  const Tensor weight = weight_of(p, x.dtype());
  return x.dtype() == DType::bf16 ? to_bfloat16(weight) : weight;
}

// The gradients of x and of the weight and the bias of each segment.
Gradients backward(const SegmentTape& tape, const Tensor& gradient) {
  const DType type = tape.x.dtype(), of_parameters = sum_type(type);
  const Tensor dy = type == DType::bf16 ? to_bfloat16(gradient) : gradient;
  Gradients gradients(1);
  if (tape.needs_x) gradients[0] = Tensor::empty(tape.x.shape(), {tape.x_type, dy.device()});
  dispatch(dy.device(), [&](auto device) {
    for (const Segment& s : tape.segments) {
      const Tensor of_rows = dy.rows(s.begin, s.end);
      Tensor d_weight, d_bias;
      if (tape.needs_x)
        matmul(device, of_rows, read_weight(tape.x, s.parameters), {}, gradients[0].rows(s.begin, s.end), {});
      if (s.needs_weight) {
        d_weight = Tensor::empty(s.parameters.weight.shape(), {of_parameters, dy.device()});
        matmul(device, of_rows, tape.x.rows(s.begin, s.end), {}, d_weight, {.transpose_a = true});
      }
      if (s.needs_bias) {
        d_bias = Tensor::empty(s.parameters.bias.shape(), {of_parameters, dy.device()});
        linear_gradient(device, {.dy = of_rows, .d_bias = d_bias});
      }
      gradients.insert(gradients.end(), {d_weight, d_bias});
    }
  });
  return gradients;
}

}  // namespace

void check_segments(std::string_view op, const Tensor& x, std::span<const int64_t> offsets, size_t segments) {
  if (x.rank() != 2) fail<ShapeError>("{}: needs a matrix, found {}", op, x.shape().text());
  if (offsets.size() != segments + 1 || offsets.front() != 0 || offsets.back() != x.size(0) ||
      !std::ranges::is_sorted(offsets))
    fail<ShapeError>("{}: {} offsets that do not divide the rows of {} into {} segments", op, offsets.size(),
                     x.shape().text(), segments);
}

Tensor segment_linear(const Tensor& x, std::span<const int64_t> offsets, std::span<const LinearParameters> parameters,
                      bool bf16_output) {
  constexpr const char* op = "segment_linear";
  const ProfileScope scope("linear");
  check_segments(op, x, offsets, parameters.size());
  if (parameters.empty()) fail<ShapeError>("{}: has no parameters", op);
  const bool bf16 = takes_bfloat16(x);
  const int64_t out = out_of(parameters[0]);
  SegmentTape tape{
      .x = bf16 ? to_bfloat16(x) : x.detach(), .x_type = x.dtype(), .needs_x = requires_gradient(x), .segments = {}};
  const DType type = !bf16 ? x.dtype() : bf16_output ? DType::bf16 : DType::f32;
  Tensor y = Tensor::empty({x.size(0), out}, {type, x.device()});
  std::vector<Tensor> inputs = {x};
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (offsets[i] == offsets[i + 1]) continue;
    const auto& [weight, bias, quantised] = parameters[i];
    check_linear(x, parameters[i]);
    if (out_of(parameters[i]) != out)
      fail<ShapeError>("{}: weights with {} and {} outputs", op, out, out_of(parameters[i]));
    const bool converts = bf16 && !quantised;  // one copy of a parameter, which is kept
    const Tensor read = converts ? stacked_in_bfloat16({&weight, 1}) : weight.defined() ? weight.detach() : Tensor{};
    inputs.insert(inputs.end(), {weight, bias});
    tape.segments.push_back(
        {.begin = offsets[i],
         .end = offsets[i + 1],
         .parameters = {.weight = read, .bias = bias.defined() ? bias.detach() : Tensor{}, .quantised = quantised},
         .needs_weight = requires_gradient(weight),
         .needs_bias = requires_gradient(bias)});
  }
  dispatch(x.device(), [&](auto device) {
    for (const Segment& s : tape.segments)
      matmul(device, tape.x.rows(s.begin, s.end), read_weight(tape.x, s.parameters), s.parameters.bias,
             y.rows(s.begin, s.end), {.transpose_b = true});
  });
  if (!execution().recording || std::ranges::none_of(inputs, requires_gradient)) return y;
  record_always(op, inputs, y, [tape = std::move(tape)](const Tensor& dy) { return backward(tape, dy); });
  return y;
}

}  // namespace attune
