#pragma once
// What tensors ask of the memory of their device. Each device's kernels implement it (kernels/memory).

#include <cstddef>

#include "attune/tensor/tensor.h"

namespace attune {

/// Every element becomes `value`, converted to the dtype.
void fill(Cpu, const Tensor& x, double value);
void fill(Plain, const Tensor& x, double value);

/// Every byte becomes 0.
void zero(Cpu, const Tensor& x);
void zero(Plain, const Tensor& x);

/// to = from; both have one dtype, one device and as many elements.
void copy(Cpu, const Tensor& from, const Tensor& to);
void copy(Plain, const Tensor& from, const Tensor& to);

/// to = from, converted element by element; both have one device and as many elements.
void convert(Cpu, const Tensor& from, const Tensor& to);
void convert(Plain, const Tensor& from, const Tensor& to);

/// Exchanges the values of two tensors of one dtype, one device and as many elements.
void swap_values(Cpu, const Tensor& a, const Tensor& b);
void swap_values(Plain, const Tensor& a, const Tensor& b);

/// accumulator += x; float32 or float64, as many elements.
void add(Cpu, const Tensor& accumulator, const Tensor& x);
void add(Plain, const Tensor& accumulator, const Tensor& x);

/// The first element that is not finite, as its flat index, or -1. float32 or float64.
int64_t first_not_finite(Cpu, const Tensor& x);
int64_t first_not_finite(Plain, const Tensor& x);

/// Between the host's memory and the device's: x.bytes() bytes.
void copy_from_host(Cpu, const std::byte* from, const Tensor& x);
void copy_from_host(Plain, const std::byte* from, const Tensor& x);
void copy_to_host(Cpu, const Tensor& x, std::byte* to);
void copy_to_host(Plain, const Tensor& x, std::byte* to);

}  // namespace attune
