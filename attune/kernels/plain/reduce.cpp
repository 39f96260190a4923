#include "attune/kernels/reduce.h"

namespace attune {

double sum_of_squares(Plain, const Tensor& x) {
  double sum = 0;
  dispatch_floating("sum_of_squares", x.dtype(), [&]<class T>(T) {
    for (const T value : x.values<T>()) sum += static_cast<double>(value) * static_cast<double>(value);
  });
  return sum;
}

}  // namespace attune
