#pragma once

namespace attune {

/// Measures the float32 operations per second that all threads together reach with multiply-adds in registers: the
/// limit that a training step is compared with. Takes about `seconds`.
double measured_peak_flops(double seconds = 0.5);

}  // namespace attune
