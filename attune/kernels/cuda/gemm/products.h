#pragma once
// Matrix products on a GPU: cuBLASLt's, or simple loops in the emulation and for what the library does not do.

#include <cstdint>

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {

/// A matrix in the memory of the device, row by row.
struct Matrix {
  void* data = nullptr;
  int64_t row = 0;          // elements from one row to the next
  bool transposed = false;  // what is stored is the transpose of the factor
  int64_t next = 0;         // elements from one matrix of a batch to the next
};

/// c = activation(a b + bias), or c += a b.        a [m, k], b [k, n], c [m, n]
struct Product {
  int64_t m, n, k;
  Matrix a, b, c;
  int64_t batch = 1;
  DType type = DType::f32;     // of a and b: float32, float64 or bfloat16
  DType c_type = DType::f32;   // the same, or float32 for bfloat16
  const void* bias = nullptr;  // [n], float64 for float64, else float32; only for a batch of 1
  Activation activation = Activation::none;
  bool accumulate = false;
};

/// Throws DeviceError.
void multiply(Cuda device, const char* name, const Product& product);

/// The same with simple loops.
void multiply_simply(Cuda device, const char* name, const Product& product);

/// Rounds a bias, [n] float32, for a library that adds it in the type of c.
void round_bias(Cuda device, const char* name, const void* bias, const Tensor& rounded);

/// c = activation(c + bias), for what a library left over. Does nothing without bias and activation.
void finish_product(Cuda device, const char* name, const Product& product);

}  // namespace attune::cuda
