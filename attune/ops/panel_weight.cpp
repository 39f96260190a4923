#include "attune/ops/panel_weight.h"

#include <cmath>
#include <cstdint>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/kernels/panel_weight.h"

namespace attune {
namespace {

void check_sizes(WeightFormat format, int64_t out, int64_t in) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t most_inputs = format == WeightFormat::int8 ? kMostInt8Inputs : kMost;
  if (out < 0 || out > kMost || in < 1 || in > most_inputs)
    fail<ShapeError>("packed weight: [{}, {}] is not a matrix of at most {} outputs and, in {}, from 1 to {} inputs",
                     out, in, kMost, enum_name(format), most_inputs);
}

// There is no scale that would say what these are.
void check_finite(const Tensor& weight, WeightFormat format) {
  if (format == WeightFormat::float32) return;
  const std::span<const float> numbers = weight.values<float>();
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      fail<NumericError>("packed weight: number {} of {} is {}, which {} cannot hold", i, weight.shape().text(),
                         numbers[i], enum_name(format));
}

struct Parts {
  Tensor storage, scales;
};

Parts empty_parts(WeightFormat format, int64_t out, int64_t in, const Tensor& storage = {}) {
  Parts parts{.storage = storage, .scales = {}};
  if (!storage.defined())
    parts.storage = Tensor::empty({PanelWeight::storage_bytes(format, out, in)}, {.dtype = DType::u8});
  if (format != WeightFormat::float32)
    parts.scales =
        Tensor::empty(PanelWeight::scales_shape(format, out, in), {.dtype = PanelWeight::scales_dtype(format)});
  return parts;
}

MutablePanels panels_to(WeightFormat format, int64_t out, int64_t in, const Tensor& storage, const Tensor& scales) {
  return {format, out, in, static_cast<std::byte*>(storage.raw()), static_cast<std::byte*>(scales.raw())};
}

}  // namespace

int64_t PanelWeight::storage_bytes(WeightFormat format, int64_t out, int64_t in) {
  check_sizes(format, out, in);
  return panel_count(out) * panel_bytes(format, in);
}

Shape PanelWeight::scales_shape(WeightFormat format, int64_t out, int64_t in) {
  check_sizes(format, out, in);
  if (format == WeightFormat::float32) return {0};
  if (format == WeightFormat::int8) return {panel_count(out), kPanelOutputs};
  return {panel_count(out), divide_up(in, kGroupInputs), kPanelOutputs};
}

PanelWeight::PanelWeight(WeightFormat format, int64_t out, int64_t in, Tensor storage, Tensor scales)
    : format_(format), out_(out), in_(in), storage_(std::move(storage)), scales_(std::move(scales)) {
  const int64_t bytes = storage_bytes(format, out, in);
  if (!storage_.defined() || storage_.dtype() != DType::u8 || storage_.shape() != Shape({bytes}))
    fail<ShapeError>("packed weight: [{}, {}] in {} takes uint8 [{}], found {} {}", out, in, enum_name(format), bytes,
                     storage_.defined() ? name_of(storage_.dtype()) : "nothing", storage_.shape().text());
  if (reinterpret_cast<uintptr_t>(storage_.raw()) % alignof(float) != 0)
    fail<ShapeError>("packed weight: the storage of [{}, {}] does not lie at a multiple of {}", out, in,
                     alignof(float));
  if (format == WeightFormat::float32) {
    scales_ = {};
    return;
  }
  const Shape shape = scales_shape(format, out, in);
  if (!scales_.defined() || scales_.dtype() != scales_dtype(format) || scales_.shape() != shape)
    fail<ShapeError>("packed weight: the scales of [{}, {}] in {} are {} {}, found {} {}", out, in, enum_name(format),
                     name_of(scales_dtype(format)), shape.text(),
                     scales_.defined() ? name_of(scales_.dtype()) : "nothing", scales_.shape().text());
}

PanelWeight PanelWeight::pack(const Tensor& weight, WeightFormat format, const Tensor& into) {
  if (weight.rank() != 2 || weight.dtype() != DType::f32)
    fail<ShapeError>("packed weight: needs a float32 matrix, found {} {}", name_of(weight.dtype()),
                     weight.shape().text());
  check_finite(weight, format);
  const int64_t out = weight.size(0), in = weight.size(1);
  const auto [storage, scales] = empty_parts(format, out, in, into);
  PanelWeight packed(format, out, in, storage, scales);
  const MutablePanels panels = panels_to(format, out, in, storage, scales);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / (in * kPanelOutputs));
  parallel_for(panel_count(out), grain, [&](int64_t begin, int64_t end) {
    dispatch(weight.device(), [&](auto device) { pack_panels(device, weight.data<float>(), panels, begin, end); });
  });
  return packed;
}

void PanelWeight::check_rows(std::span<const int32_t> ids) const {
  for (const int32_t id : ids)
    if (id < 0 || id >= out_) fail<ShapeError>("packed weight: row {} of [{}, {}]", id, out_, in_);
}

Tensor PanelWeight::unpack() const {
  Tensor weight = Tensor::empty({out_, in_});
  const Panels panels = panels_of(*this);
  parallel_for(out_, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      dispatch(weight.device(),
               [&](auto device) { unpack_row(device, panels, row, weight.data<float>() + row * in_); });
  });
  return weight;
}

PanelWeight PanelWeight::select(std::span<const int32_t> ids) const {
  check_rows(ids);
  const auto out = static_cast<int64_t>(ids.size());
  const auto [storage, scales] = empty_parts(format_, out, in_);
  const Panels panels = panels_of(*this);
  const MutablePanels to = panels_to(format_, out, in_, storage, scales);
  constexpr int64_t kGrain = 4 * kPanelOutputs;
  parallel_for(out, kGrain, [&](int64_t begin, int64_t end) {
    MutablePanels some = to.from_panel(begin / kPanelOutputs);
    some.out = end - begin;
    dispatch(storage.device(), [&](auto device) {
      select_outputs(device, panels, ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), some);
    });
  });
  return {format_, out, in_, storage, scales};
}

Tensor PanelWeight::rows(std::span<const int32_t> ids) const {
  check_rows(ids);
  Tensor rows = Tensor::empty({static_cast<int64_t>(ids.size()), in_});
  const Panels panels = panels_of(*this);
  parallel_for(static_cast<int64_t>(ids.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      dispatch(rows.device(), [&](auto device) {
        unpack_row(device, panels, ids[static_cast<size_t>(i)], rows.data<float>() + i * in_);
      });
  });
  return rows;
}

}  // namespace attune
