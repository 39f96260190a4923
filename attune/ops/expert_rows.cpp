#include "attune/ops/expert_rows.h"

#include <limits>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/base/rounding.h"
#include "attune/kernels/expert_rows.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

void check_matrix(const char* op, const Tensor& x, int64_t rows) {
  if (x.rank() != 2 || x.size(0) != rows)
    fail<ShapeError>("{}: needs a matrix of {} rows, found {}", op, rows, x.shape().text());
  if (x.dtype() != DType::bf16 && !is_floating(x.dtype())) refuse_dtype(op, x.dtype());
}

ExpertPlaces places_on(const Device& device, const ExpertRows& rows, const Tensor& weights = {}) {
  return {.places = rows.places.on(device).reshape({rows.tokens(), rows.experts_per_token}), .weights = weights};
}

// Room for the rows of all experts. Kernels leave out the rows of no token.
Tensor empty_rows(const ExpertRows& rows, int64_t columns, DType type, const Device& device) {
  const Shape shape = {rows.rows(), columns};
  return rows.rows() > rows.places.size() ? Tensor::zeros(shape, {type, device}) : Tensor::empty(shape, {type, device});
}

}  // namespace

ExpertRows sort_by_expert(const Tensor& chosen, int64_t experts, int64_t unit) {
  if (chosen.rank() != 2 || chosen.dtype() != DType::i32 || unit < 1)
    fail<ShapeError>("sort_by_expert: needs an int32 matrix and a unit above 0, found {} {} and {}",
                     name_of(chosen.dtype()), chosen.shape().text(), unit);
  const HostView view(chosen);
  const std::span<const int32_t> choices = view.as<int32_t>();
  ExpertRows rows{.experts_per_token = chosen.size(1)};
  rows.counts.assign(static_cast<size_t>(experts), 0);
  for (const int32_t e : choices) {
    if (e < 0 || e >= experts) fail<ShapeError>("sort_by_expert: expert {} of {}", e, experts);
    ++rows.counts[static_cast<size_t>(e)];
  }
  for (const int64_t count : rows.counts) rows.offsets.push_back(rows.offsets.back() + round_up(count, unit));
  if (rows.rows() > std::numeric_limits<int32_t>::max())
    fail<ShapeError>("sort_by_expert: {} rows are more than 32 bits can number", rows.rows());
  std::vector<int64_t> next(rows.offsets.begin(), rows.offsets.end() - 1);
  std::vector<int32_t> places;
  places.reserve(choices.size());
  for (const int32_t e : choices) places.push_back(static_cast<int32_t>(next[static_cast<size_t>(e)]++));
  rows.places = Indices(std::move(places));
  return rows;
}

Tensor spread_to_experts(const Tensor& x, const ExpertRows& rows) {
  constexpr const char* op = "spread_to_experts";
  const ProfileScope scope(op);
  check_matrix(op, x, rows.tokens());
  Tensor y = empty_rows(rows, x.size(1), x.dtype(), x.device());
  dispatch(x.device(), [&](auto device) { spread_rows(device, x, places_on(device, rows), y); });
  record(op, {x}, y, [rows, shape = x.shape(), type = sum_type(x.dtype())](const Tensor& dy) {
    const Tensor dx = Tensor::empty(shape, {type, dy.device()});
    dispatch(dy.device(), [&](auto device) { combine_rows(device, dy, places_on(device, rows), dx); });
    return Gradients{dx};
  });
  return y;
}

Tensor combine_experts(const Tensor& x, const Tensor& weights, const ExpertRows& rows) {
  constexpr const char* op = "combine_experts";
  const ProfileScope scope(op);
  check_matrix(op, x, rows.rows());
  const DType type = sum_type(x.dtype());
  if (weights.shape() != Shape({rows.tokens(), rows.experts_per_token}) || weights.dtype() != type)
    fail<ShapeError>("{}: needs {} weights [{}, {}], found {} {}", op, name_of(type), rows.tokens(),
                     rows.experts_per_token, name_of(weights.dtype()), weights.shape().text());
  check_device(op, x, {weights});
  Tensor y = Tensor::empty({rows.tokens(), x.size(1)}, {type, x.device()});
  dispatch(x.device(), [&](auto device) { combine_rows(device, x, places_on(device, rows, weights), y); });
  if (!is_recording({x, weights})) return y;
  record(op, {x, weights}, y, [rows, x = x.detach(), weights = weights.detach()](const Tensor& dy) {
    const Tensor dx = empty_rows(rows, x.size(1), x.dtype(), x.device()), d_weights = Tensor::empty_like(weights);
    dispatch(dy.device(), [&](auto device) {
      const ExpertPlaces at = places_on(device, rows, weights);
      spread_rows(device, dy, at, dx);
      combine_rows_weights(device, x, at, dy, d_weights);
    });
    return Gradients{dx, d_weights};
  });
  return y;
}

}  // namespace attune
