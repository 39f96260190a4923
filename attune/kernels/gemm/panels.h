#pragma once
// Weights laid out for inference, see PanelWeight (attune/ops/linear/panel_weight.h).

#include <cstddef>
#include <cstdint>

#include "attune/base/rounding.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// How a weight w is stored for inference.
///   float32   w itself
///   int8      w = scale q, q in [-127, 127], one scale for each output
///   int4      w = scale q, q in [-8, 7], one scale (bfloat16) for each 32 inputs of an output
///   bfloat16  w rounded to bfloat16: itself, where it comes from a file in bfloat16
enum class WeightFormat { float32, int8, int4, bfloat16 };

/// Whether weights of this format are integers, which products multiply with integers.
constexpr bool is_quantised(WeightFormat format) {
  return format == WeightFormat::int8 || format == WeightFormat::int4;
}

constexpr int64_t kPanelOutputs = 16;
constexpr int64_t kPanelRow = 64;     // bytes of one input in a float32 panel, of two in bfloat16, of four in int8
constexpr int64_t kGroupInputs = 32;  // int4: inputs of an output that share a scale, a group
constexpr int64_t kGroupBytes = 256;  // of one group in an int4 panel
constexpr int64_t kMostInt8Inputs = 65536;  // so that sums of products of bytes fit into 32 bits

constexpr int64_t panel_count(int64_t out) {
  return divide_up(out, kPanelOutputs);
}

constexpr int64_t panel_bytes(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::float32:
      return in * kPanelRow;
    case WeightFormat::bfloat16:
      return divide_up(in, 2) * kPanelRow;
    case WeightFormat::int8:
      return kPanelRow + divide_up(in, 4) * kPanelRow;
    case WeightFormat::int4:
      return divide_up(in, kGroupInputs) * kGroupBytes;
  }
  return 0;
}

/// Bytes of the scales of one panel.
constexpr int64_t scale_bytes(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::float32:
    case WeightFormat::bfloat16:
      return 0;
    case WeightFormat::int8:
      return kPanelOutputs * 4;
    case WeightFormat::int4:
      return divide_up(in, kGroupInputs) * kPanelOutputs * 2;
  }
  return 0;
}

/// The offset in bytes of input k of output j (of 16): in an int8 panel from the end of its sums; in an int4 panel from
/// the beginning of the group, where k counts within its half of the group.
constexpr int64_t int8_place(int64_t k, int64_t j) {
  return k / 4 * kPanelRow + j * 4 + k % 4;
}

/// The place of input k of output j in a bfloat16 panel, counted in numbers.
constexpr int64_t bfloat16_place(int64_t k, int64_t j) {
  return (k / 2 * kPanelOutputs + j) * 2 + k % 2;
}

/// A weight [out, in] in panels, as kernels read it.
struct Panels {
  WeightFormat format = WeightFormat::float32;
  int64_t out = 0, in = 0;
  Tensor storage;  // uint8 [panel_count(out) * panel_bytes(format, in)]
  Tensor scales;   // panel by panel, float32 for int8, bfloat16 for int4, else undefined
};

}  // namespace attune
