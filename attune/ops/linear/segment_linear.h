#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attune/ops/linear/linear.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// linear() of each segment of rows with parameters of its own: rows offsets[i] to offsets[i + 1] - 1 of x times those
/// of parameters[i]. Parameters of empty segments are not read, but for the width of the first, and get no gradient.
///   x [rows, in]   each weight [out, in], each bias [out] or undefined   returns [rows, out]
/// bfloat16 and `bf16_output` as in linear(). Differentiable in x and in the parameters. Throws as linear() does.
Tensor segment_linear(const Tensor& x, std::span<const int64_t> offsets, std::span<const LinearParameters> parameters,
                      bool bf16_output = false);

/// Throws ShapeError, naming the operation, unless x is a matrix whose rows the `segments` segments cover.
void check_segments(std::string_view op, const Tensor& x, std::span<const int64_t> offsets, size_t segments);

}  // namespace attune
