#pragma once
// Panels in the memory of the CPU.

#include <cstddef>
#include <cstdint>
#include <span>

#include "attune/kernels/gemm/panel_weight.h"

namespace attune::cpu {

template <class Byte>
struct PanelsOf {
  WeightFormat format;
  int64_t out, in;
  Byte* data;
  Byte* scales;  // float for int8, bfloat16 for int4, else null

  Byte* panel(int64_t p) const { return data + p * panel_bytes(format, in); }
  Byte* scales_of(int64_t p) const { return scales + p * scale_bytes(format, in); }
  /// The panels from panel p on.
  PanelsOf from_panel(int64_t p) const { return {format, out - p * kPanelOutputs, in, panel(p), scales_of(p)}; }
};
using PanelData = PanelsOf<const std::byte>;
using MutablePanelData = PanelsOf<std::byte>;

inline PanelData data_of(const Panels& p) {
  return {p.format, p.out, p.in, static_cast<const std::byte*>(p.storage.raw()),
          static_cast<const std::byte*>(p.scales.raw())};
}
inline MutablePanelData mutable_data_of(const Panels& p) {
  return {p.format, p.out, p.in, static_cast<std::byte*>(p.storage.raw()), static_cast<std::byte*>(p.scales.raw())};
}

/// Writes rows of `in` numbers, which may lie anywhere, to one float32 panel: panel[k * kPanelOutputs + j] =
/// rows[j][k].
void lay_out_float_panel(const float* const* rows /*[kPanelOutputs]*/, int64_t in, float* panel);

/// Copies the outputs that `ids` name to panels of their own, on one thread; to.out is how many there are.
void select_outputs(const PanelData& from, std::span<const int32_t> ids, const MutablePanelData& to);

}  // namespace attune::cpu
