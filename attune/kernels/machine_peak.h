#pragma once

namespace attune {

/// Float32 operations a second that all threads reach together with multiply-adds in registers: the limit that a
/// training step is measured against. Takes about `seconds`.
double measured_peak_flops(double seconds = 0.5);

}  // namespace attune
