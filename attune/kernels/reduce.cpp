#include "attune/kernels/reduce.h"

// Loops over the tensors for devices on which each may be a call of its own.

namespace attune {
namespace {

template <class D>
void one_by_one(D device, std::span<const Tensor> tensors, const Tensor& sum) {
  double squares = 0;
  for (const Tensor& x : tensors) squares += sum_of_squares(device, x);
  *sum.data<double>() += squares;
}

}  // namespace

void add_squares(Cpu device, std::span<const Tensor> tensors, const Tensor& sum) {
  one_by_one(device, tensors, sum);
}
void add_squares(Plain device, std::span<const Tensor> tensors, const Tensor& sum) {
  one_by_one(device, tensors, sum);
}

}  // namespace attune
