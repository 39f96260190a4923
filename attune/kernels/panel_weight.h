#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace [[gnu::visibility("default")]] attune {

/// How a weight is kept for inference.
///   float32   as it is
///   int8      w = scale q, q in [-127, 127], one scale for each output
///   int4      w = scale q, q in [-8, 7], one scale (bfloat16) for each output and 32 inputs
enum class WeightFormat { float32, int8, int4 };

constexpr int64_t kPanelOutputs = 16;
constexpr int64_t kPanelRow = 64;           // bytes of one input of a float32 panel, of four of an int8 panel
constexpr int64_t kGroupInputs = 32;        // of one scale, int4
constexpr int64_t kGroupBytes = 256;        // of one group of an int4 panel
constexpr int64_t kMostInt8Inputs = 65536;  // so that sums of products of bytes fit into 32 bits

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

constexpr int64_t panel_count(int64_t out) {
  return divide_up(out, kPanelOutputs);
}

constexpr int64_t panel_bytes(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::float32:
      return in * kPanelRow;
    case WeightFormat::int8:
      return kPanelRow + divide_up(in, 4) * kPanelRow;
    case WeightFormat::int4:
      return divide_up(in, kGroupInputs) * kGroupBytes;
  }
  return 0;
}

/// Of the scales of one panel.
constexpr int64_t scale_bytes(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::float32:
      return 0;
    case WeightFormat::int8:
      return kPanelOutputs * 4;
    case WeightFormat::int4:
      return divide_up(in, kGroupInputs) * kPanelOutputs * 2;
  }
  return 0;
}

/// What kernels read, or write when they pack.
template <class Byte>
struct PanelsOf {
  WeightFormat format;
  int64_t out, in;
  Byte* data;
  Byte* scales;  // float, or bfloat16 for int4; null for float32

  Byte* panel(int64_t p) const { return data + p * panel_bytes(format, in); }
  Byte* scales_of(int64_t p) const { return scales + p * scale_bytes(format, in); }
  /// Without the panels before one.
  PanelsOf from_panel(int64_t p) const { return {format, out - p * kPanelOutputs, in, panel(p), scales_of(p)}; }
};
using Panels = PanelsOf<const std::byte>;
using MutablePanels = PanelsOf<std::byte>;

/// Rows, each `in` numbers that may be anywhere, into one float32 panel: panel[k * stride + j] = rows[j][k].
void pack_float_panel(Cpu, const float* const* rows /*[16]*/, int64_t in, float* panel, int64_t stride = kPanelOutputs);

/// weight [out, in] into panels [begin, end).
void pack_panels(Cpu, const float* weight, const MutablePanels& to, int64_t begin, int64_t end);

/// The outputs that `ids` name into panels of their own; to.out is how many there are.
void select_outputs(Cpu, const Panels& from, std::span<const int32_t> ids, const MutablePanels& to);

/// One row of the weight, as products read it.
void unpack_row(Cpu, const Panels& from, int64_t row, float* to);

}  // namespace attune
