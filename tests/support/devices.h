#pragma once
// The same work on other devices and on the CPU.

#include <limits>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/tensor/tensor.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_error.h"

namespace attune {

/// The devices that tests compare with the CPU: the one that the environment variable ATTUNE_TEST_DEVICE names
/// (`cuda`), else Plain. If this device cannot be used, every test of the program is skipped.
std::vector<Device> devices_under_test();

/// The CPU and devices_under_test().
std::vector<Device> all_devices();

/// How many GPUs, real or emulated, this process can use; 0 in a build without CUDA.
int usable_gpus();

/// Whether the emulation looks for races in kernels (ATTUNE_CUDA_RACES). It compares all memory of GPUs then, so that
/// only one thread may use them.
bool looks_for_races();
inline constexpr const char* kOneThreadForRaces = "ranks are threads here; races are looked for with one thread";

/// The largest relative error of a product that rounds each number to this type and adds in another order.
constexpr double device_tolerance(DType dtype) {
  return dtype == DType::f32 ? 1e-5 : 1e-12;
}

/// Copies of tensors on a device.
inline std::vector<Tensor> copies_on(const Device& device, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.to(device));
  return copies;
}

/// Outputs and gradients of f(inputs) on one device, for one random cotangent of the first output. The results are on
/// the CPU.
template <class F>
std::vector<Tensor> outputs_and_gradients(F&& f, const std::vector<Tensor>& inputs, const Device& device) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.to(device));
    if (is_floating(input.dtype())) require_gradient(leaves.back());
  }
  const Tensor output = f(leaves);
  std::vector<Tensor> results = {output.detach().to(Cpu{})};
  if (output.node() == nullptr) return results;
  const DType dtype = output.dtype() == DType::f64 ? DType::f64 : DType::f32;
  backward(output, normal(output.shape(), {.dtype = dtype, .seed = 77}).to(device));
  for (const Tensor& leaf : leaves)
    if (const Tensor g = gradient(leaf); g.defined()) results.push_back(g.to(Cpu{}));
  return results;
}

/// The largest relative error of the outputs and gradients of devices_under_test() against the CPU's; NaN where they
/// have a NaN.
template <class F>
double device_error(F&& f, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> expected = outputs_and_gradients(f, inputs, Cpu{});
  double largest = 0;
  for (const Device& device : devices_under_test()) {
    const std::vector<Tensor> found = outputs_and_gradients(f, inputs, device);
    if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < found.size(); ++i) largest = larger_error(largest, relative_error(found[i], expected[i]));
  }
  return largest;
}

}  // namespace attune
