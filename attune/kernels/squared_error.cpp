#include "attune/kernels/squared_error.h"

// Simple loops that serve every device whose memory can be read with pointers: a batch has one number for each text.

namespace attune {
namespace {

double sum_of_squared_errors(const Tensor& x, const Tensor& target) {
  double sum = 0;
  dispatch_floating("squared_error", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double error = static_cast<double>(x.data<T>()[i]) - target.data<T>()[i];
      sum += error * error;
    }
  });
  return sum;
}

void squared_error_gradient(const Tensor& x, const Tensor& target, double factor, const Tensor& dx) {
  dispatch_floating("squared_error", x.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double error = static_cast<double>(x.data<T>()[i]) - target.data<T>()[i];
      dx.data<T>()[i] = static_cast<T>(factor * 2 * error);
    }
  });
}

}  // namespace

void squared_error_forward(Cpu, const Tensor& x, const Tensor& target, const Tensor& sum) {
  *sum.data<double>() = sum_of_squared_errors(x, target);
}
void squared_error_forward(Plain, const Tensor& x, const Tensor& target, const Tensor& sum) {
  *sum.data<double>() = sum_of_squared_errors(x, target);
}
void squared_error_backward(Cpu, const Tensor& x, const Tensor& target, double factor, const Tensor& dx) {
  squared_error_gradient(x, target, factor, dx);
}
void squared_error_backward(Plain, const Tensor& x, const Tensor& target, double factor, const Tensor& dx) {
  squared_error_gradient(x, target, factor, dx);
}

}  // namespace attune
