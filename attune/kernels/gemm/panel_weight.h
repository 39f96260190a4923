#pragma once
// Converts weights to panels and back.

#include "attune/kernels/gemm/panels.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// Writes weight [out, in] into panels: float32, or bfloat16 into panels of bfloat16. quantise.h defines the quantised
/// numbers and scales.
void lay_out_panels(Cpu, const Tensor& weight, const Panels& to);
void lay_out_panels(Plain, const Tensor& weight, const Panels& to);
void lay_out_panels(Cuda, const Tensor& weight, const Panels& to);

/// Writes rows of the weight, dequantised, to `to`: the rows `ids` (int32 [n]), or all rows if `ids` is undefined.
///   to [n, in] float32
void read_panel_rows(Cpu, const Panels& from, const Tensor& ids, const Tensor& to);
void read_panel_rows(Plain, const Panels& from, const Tensor& ids, const Tensor& to);
void read_panel_rows(Cuda, const Panels& from, const Tensor& ids, const Tensor& to);

}  // namespace attune
