#include "attune/ops/linear/panel_weight.h"

#include <cstdint>

#include "attune/base/fail.h"
#include "attune/kernels/gemm/panel_weight.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_sizes(WeightFormat format, int64_t out, int64_t in) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t most_inputs = format == WeightFormat::int8 ? kMostInt8Inputs : kMost;
  if (out < 0 || out > kMost || in < 1 || in > most_inputs)
    fail<ShapeError>("panel weight: [{}, {}] is not a matrix of at most {} outputs and, in {}, from 1 to {} inputs",
                     out, in, kMost, enum_name(format), most_inputs);
}

// No scale can represent a number that is not finite.
void check_finite(const Tensor& weight, WeightFormat format) {
  if (!is_quantised(format)) return;
  const int64_t i = first_not_finite(weight);
  if (i >= 0)
    fail<NumericError>("panel weight: number {} of {} is {}, which {} cannot hold", i, weight.shape().text(),
                       weight.detach().reshape({-1}).rows(i, i + 1).item(), enum_name(format));
}

// Uninitialised panels, in `storage` if it is defined.
PanelWeight empty_panels(WeightFormat format, int64_t out, int64_t in, const Device& device,
                         const Tensor& storage = {}) {
  const int64_t bytes = PanelWeight::storage_bytes(format, out, in);
  Tensor scales;
  if (is_quantised(format))
    scales = Tensor::empty(PanelWeight::scales_shape(format, out, in), {PanelWeight::scales_dtype(format), device});
  return {format, out, in, storage.defined() ? storage : Tensor::empty({bytes}, {DType::u8, device}), scales};
}

}  // namespace

int64_t PanelWeight::storage_bytes(WeightFormat format, int64_t out, int64_t in) {
  check_sizes(format, out, in);
  return panel_count(out) * panel_bytes(format, in);
}

Shape PanelWeight::scales_shape(WeightFormat format, int64_t out, int64_t in) {
  check_sizes(format, out, in);
  if (!is_quantised(format)) return {0};
  if (format == WeightFormat::int8) return {panel_count(out), kPanelOutputs};
  return {panel_count(out), divide_up(in, kGroupInputs), kPanelOutputs};
}

PanelWeight::PanelWeight(WeightFormat format, int64_t out, int64_t in, Tensor storage, Tensor scales)
    : panels_{format, out, in, std::move(storage), std::move(scales)} {
  const int64_t bytes = storage_bytes(format, out, in);
  if (!panels_.storage.defined() || panels_.storage.dtype() != DType::u8 || panels_.storage.shape() != Shape({bytes}))
    fail<ShapeError>("panel weight: [{}, {}] in {} takes uint8 [{}], found {} {}", out, in, enum_name(format), bytes,
                     panels_.storage.defined() ? name_of(panels_.storage.dtype()) : "nothing",
                     panels_.storage.shape().text());
  if (reinterpret_cast<uintptr_t>(panels_.storage.address()) % alignof(float) != 0)
    fail<ShapeError>("panel weight: the storage of [{}, {}] does not lie at a multiple of {}", out, in, alignof(float));
  if (!is_quantised(format)) {
    panels_.scales = {};
    return;
  }
  const Shape shape = scales_shape(format, out, in);
  if (!panels_.scales.defined() || panels_.scales.dtype() != scales_dtype(format) || panels_.scales.shape() != shape)
    fail<ShapeError>("panel weight: the scales of [{}, {}] in {} are {} {}, found {} {}", out, in, enum_name(format),
                     name_of(scales_dtype(format)), shape.text(),
                     panels_.scales.defined() ? name_of(panels_.scales.dtype()) : "nothing",
                     panels_.scales.shape().text());
  check_device("panel weight", panels_.storage, {panels_.scales});
}

PanelWeight PanelWeight::lay_out(const Tensor& weight, WeightFormat format, const Tensor& into) {
  if (weight.rank() != 2 || (weight.dtype() != DType::f32 && weight.dtype() != DType::bf16))
    fail<ShapeError>("panel weight: needs a float32 or bfloat16 matrix, found {} {}", name_of(weight.dtype()),
                     weight.shape().text());
  const Tensor numbers = format == WeightFormat::bfloat16 ? weight : to_float32(weight);
  check_finite(numbers, format);
  PanelWeight made = empty_panels(format, weight.size(0), weight.size(1), weight.device(), into);
  check_device("panel weight", weight, {made.storage()});
  dispatch(weight.device(), [&](auto device) { lay_out_panels(device, numbers, made.panels_); });
  return made;
}

PanelWeight PanelWeight::to(const Device& device) const {
  return {format(), out(), in(), storage().to(device), scales().defined() ? scales().to(device) : Tensor{}};
}

void PanelWeight::check_rows(const Indices& ids) const {
  for (const int32_t id : ids.values())
    if (id < 0 || id >= out()) fail<ShapeError>("panel weight: row {} of [{}, {}]", id, out(), in());
}

Tensor PanelWeight::to_matrix() const {
  const Tensor weight = Tensor::empty({out(), in()}, {DType::f32, storage().device()});
  dispatch(weight.device(), [&](auto device) { read_panel_rows(device, panels_, {}, weight); });
  return weight;
}

Tensor PanelWeight::rows(const Indices& ids) const {
  check_rows(ids);
  const Tensor rows = Tensor::empty({ids.size(), in()}, {DType::f32, storage().device()});
  const Tensor numbers = ids.on(rows.device());
  dispatch(rows.device(), [&](auto device) { read_panel_rows(device, panels_, numbers, rows); });
  return rows;
}

}  // namespace attune
