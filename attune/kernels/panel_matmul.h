#pragma once

#include "attune/kernels/matmul.h"
#include "attune/tensor/device.h"

namespace attune {

/// matmul() out of panels that are packed on the way, for k > 0. Sums are chains over k that are cut at fixed places,
/// so that a row's result depends on that row alone: not on how many others there are, nor on the number of threads.
void panel_matmul(Cpu, const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape);

}  // namespace attune
