#pragma once
// Single numbers of weights in panels.

#include <cstdint>

#include "attune/kernels/gemm/panel_weight.h"

namespace attune::plain {

class PanelReader {
 public:
  explicit PanelReader(const Panels& panels) : panels_(panels), bytes_(panels.storage.data<uint8_t>()) {}

  /// q of output o and input k, int8 or int4.
  int32_t number(int64_t o, int64_t k) const {
    const uint8_t* const panel = panel_of(o);
    const int64_t j = o % kPanelOutputs;
    if (panels_.format == WeightFormat::int8) return static_cast<int8_t>(panel[kPanelRow + int8_place(k, j)]);
    const int64_t within = k % kGroupInputs;
    const uint8_t both = panel[k / kGroupInputs * kGroupBytes + int8_place(within % 16, j)];
    return (within < 16 ? both & 15 : both >> 4) - 8;
  }
  /// The scale of number(o, k).
  float scale(int64_t o, int64_t k) const {
    if (panels_.format == WeightFormat::int8) return panels_.scales.data<float>()[o];
    const int64_t groups = divide_up(panels_.in, kGroupInputs), panel = o / kPanelOutputs;
    return panels_.scales.data<bfloat16>()[(panel * groups + k / kGroupInputs) * kPanelOutputs + o % kPanelOutputs];
  }
  /// The weight of output o and input k.
  float value(int64_t o, int64_t k) const {
    const uint8_t* const panel = panel_of(o);
    const int64_t j = o % kPanelOutputs;
    if (panels_.format == WeightFormat::float32) return reinterpret_cast<const float*>(panel)[k * kPanelOutputs + j];
    if (panels_.format == WeightFormat::bfloat16) return reinterpret_cast<const bfloat16*>(panel)[bfloat16_place(k, j)];
    return scale(o, k) * static_cast<float>(number(o, k));
  }

 private:
  const uint8_t* panel_of(int64_t o) const {
    return bytes_ + o / kPanelOutputs * panel_bytes(panels_.format, panels_.in);
  }

  const Panels& panels_;
  const uint8_t* bytes_;
};

}  // namespace attune::plain
