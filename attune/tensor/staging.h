#pragma once
// Tensors of a device that pass through the memory of the host.

#include <memory>
#include <utility>

#include "attune/tensor/tensor.h"

namespace attune {

/// Memory of the host for a tensor of a device, and the copies between the two. On a GPU they go on beside its work;
/// elsewhere each has ended when its function returns.
class Staging {
 public:
  explicit Staging(Tensor host) : host_(std::move(host)) {}
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// On the CPU, with the shape and the dtype of that tensor.
  const Tensor& host() const { return host_; }

  /// Starts to = from, where `from` is on the device and `to` is host() or rows of it. The copy reads `from` after
  /// everything that the device was given before. Until wait() has returned, nothing may change `from`, and nothing may
  /// touch host(). Throws DeviceError.
  virtual void fetch(const Tensor& from, const Tensor& to) = 0;
  /// Waits for the copy of fetch(). May be called by several threads. Throws DeviceError, also where what the device
  /// was given before has failed.
  virtual void wait() = 0;
  /// Starts to = from, where `from` is host() or rows of it and `to` is on the device. Comes after a fetch() that was
  /// waited for, and what the device was given since that fetch() may not use `to`. What it is given later waits for
  /// the copy. host() may change again after the wait() of another fetch(). Throws DeviceError.
  virtual void send(const Tensor& from, const Tensor& to) = 0;

 private:
  Tensor host_;
};

/// For tensors with the shape, dtype and device of x, which is not on the CPU. On a GPU the memory is pinned where that
/// can be had; with other memory the host waits for copies. Throws DeviceError.
std::shared_ptr<Staging> make_staging(const Tensor& x);
/// The same for a GPU. kernels/cuda implements it; cuda_missing.cpp stands for it in a build without CUDA.
std::shared_ptr<Staging> make_cuda_staging(const Tensor& x);

}  // namespace attune
