#pragma once
// Single numbers of weights in panels, in kernels. See plain/panel_reader.h.

#include "attune/kernels/cuda/runtime/thread.h"
#include "attune/kernels/gemm/panels.h"

namespace attune::cuda {

struct PanelReader {
  WeightFormat format;
  int64_t out, in, bytes;  // of a panel
  uint8_t* storage;
  const void* scales;

  explicit PanelReader(const Panels& panels)
      : format(panels.format),
        out(panels.out),
        in(panels.in),
        bytes(panel_bytes(panels.format, panels.in)),
        storage(panels.storage.data<uint8_t>()),
        scales(panels.scales.raw()) {}

  ATTUNE_DEVICE uint8_t* panel_of(int64_t o) const { return storage + o / kPanelOutputs * bytes; }

  /// A weight in float32 or bfloat16.
  ATTUNE_DEVICE float number(int64_t o, int64_t k) const {
    const int64_t j = o % kPanelOutputs;
    if (format == WeightFormat::float32) return reinterpret_cast<const float*>(panel_of(o))[k * kPanelOutputs + j];
    return reinterpret_cast<const bfloat16*>(panel_of(o))[bfloat16_place(k, j)];
  }

  /// The weights of inputs 4 * quad ... 4 * quad + 3 of output o, as signed bytes; the first is in the low byte.
  ATTUNE_DEVICE int32_t quad(int64_t o, int64_t quad) const {
    const int64_t j = o % kPanelOutputs;
    if (format == WeightFormat::int8)
      return reinterpret_cast<const int32_t*>(panel_of(o) + kPanelRow)[quad * kPanelOutputs + j];
    const int64_t group = quad / 8, within = quad % 8;  // the second half of a group is in the upper four bits
    const auto both =
        reinterpret_cast<const uint32_t*>(panel_of(o) + group * kGroupBytes)[within % 4 * kPanelOutputs + j];
    const uint32_t numbers = (within < 4 ? both : both >> 4) & 0x0f0f0f0fu;  // q + 8
    int32_t result = 0;
    for (int shift = 0; shift < 32; shift += 8)
      result |= static_cast<int32_t>((static_cast<uint32_t>((numbers >> shift & 0xffu) - 8) & 0xffu) << shift);
    return result;
  }

  /// The scale of the integers of output o for the group of input k.
  ATTUNE_DEVICE float scale(int64_t o, int64_t k) const {
    if (format == WeightFormat::int8) return static_cast<const float*>(scales)[o];
    const int64_t groups = divide_up(in, kGroupInputs), panel = o / kPanelOutputs;
    return static_cast<const bfloat16*>(
        scales)[(panel * groups + k / kGroupInputs) * kPanelOutputs + o % kPanelOutputs];
  }

  /// The weight of output o and input k.
  ATTUNE_DEVICE float value(int64_t o, int64_t k) const {
    if (!is_quantised(format)) return number(o, k);
    const int32_t q = static_cast<int8_t>(quad(o, k / 4) >> (k % 4 * 8));
    return rounded_product(scale(o, k), static_cast<float>(q));
  }
};

}  // namespace attune::cuda
