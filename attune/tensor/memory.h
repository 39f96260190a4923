#pragma once
// The memory operations that tensors need. Each device implements them among its kernels.

#include <cstddef>

#include "attune/tensor/tensor.h"

namespace attune {

/// Sets every element to `value`, converted to the dtype.
void fill(Cpu, const Tensor& x, double value);
void fill(Plain, const Tensor& x, double value);
void fill(Cuda, const Tensor& x, double value);

/// Sets every byte to 0.
void zero(Cpu, const Tensor& x);
void zero(Plain, const Tensor& x);
void zero(Cuda, const Tensor& x);

/// to = from; both have the same dtype, device and number of elements, and do not overlap.
void copy(Cpu, const Tensor& from, const Tensor& to);
void copy(Plain, const Tensor& from, const Tensor& to);
void copy(Cuda, const Tensor& from, const Tensor& to);

/// to = from, converted element by element; both have the same device and number of elements.
void convert(Cpu, const Tensor& from, const Tensor& to);
void convert(Plain, const Tensor& from, const Tensor& to);
void convert(Cuda, const Tensor& from, const Tensor& to);

/// Swaps the values of two tensors of the same dtype, device and number of elements.
void swap_values(Cpu, const Tensor& a, const Tensor& b);
void swap_values(Plain, const Tensor& a, const Tensor& b);
void swap_values(Cuda, const Tensor& a, const Tensor& b);

/// accumulator += x; float32 or float64, the same number of elements.
void add(Cpu, const Tensor& accumulator, const Tensor& x);
void add(Plain, const Tensor& accumulator, const Tensor& x);
void add(Cuda, const Tensor& accumulator, const Tensor& x);

/// Returns the flat index of the first element that is not finite, or -1. float32 or float64.
int64_t first_not_finite(Cpu, const Tensor& x);
int64_t first_not_finite(Plain, const Tensor& x);
int64_t first_not_finite(Cuda, const Tensor& x);

/// Copy x.bytes() bytes between the memory of the host and that of the device.
void copy_from_host(Cpu, const std::byte* from, const Tensor& x);
void copy_from_host(Plain, const std::byte* from, const Tensor& x);
void copy_from_host(Cuda, const std::byte* from, const Tensor& x);
void copy_to_host(Cpu, const Tensor& x, std::byte* to);
void copy_to_host(Plain, const Tensor& x, std::byte* to);
void copy_to_host(Cuda, const Tensor& x, std::byte* to);

}  // namespace attune
