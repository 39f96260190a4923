#pragma once
// Errors of numbers under test. NaN is kept: std::max would drop it.

#include <algorithm>
#include <cmath>

namespace attune {

/// The larger of two errors; NaN where either is NaN.
inline double larger_error(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

/// How far numbers are from the expected ones. A NaN on either side makes the error NaN, an infinity makes it infinite;
/// infinities that are equal are no error.
class LargestError {
 public:
  void add(double found, double expected) {
    absolute_ = larger_error(absolute_, found == expected ? 0 : std::abs(found - expected));
    if (std::isfinite(expected)) magnitude_ = std::max(magnitude_, std::abs(expected));
  }

  double absolute() const { return absolute_; }
  double magnitude() const { return magnitude_; }  // the largest magnitude of a finite expected number
  /// The absolute error as a share of the magnitude, or of 1 where that is below 1e-30.
  double relative() const { return magnitude_ < 1e-30 ? absolute_ : absolute_ / magnitude_; }

 private:
  double absolute_ = 0;
  double magnitude_ = 0;
};

}  // namespace attune
