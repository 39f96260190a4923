#pragma once

#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

/// The sum of x[i]^2 in float64; the same whatever the number of threads.
double sum_of_squares(Cpu, const float* x, int64_t n);
double sum_of_squares(Cpu, const double* x, int64_t n);

}  // namespace attune
