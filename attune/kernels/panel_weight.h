#pragma once
// Weights into panels and back.

#include "attune/kernels/panels.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// weight [out, in] float32 into panels. Quantised numbers and scales are those of quantise.h.
void pack_panels(Cpu, const Tensor& weight, const Panels& to);
void pack_panels(Plain, const Tensor& weight, const Panels& to);

/// Rows of the weight, as products read it: those that `ids` name (int32 [n]), or all where it is undefined.
///   to [n, in] float32
void unpack_rows(Cpu, const Panels& from, const Tensor& ids, const Tensor& to);
void unpack_rows(Plain, const Panels& from, const Tensor& ids, const Tensor& to);

}  // namespace attune
