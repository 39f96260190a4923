#pragma once
// Tensors of a device that pass through the memory of the host.

#include <memory>
#include <utility>

#include "attune/tensor/tensor.h"

namespace attune {

/// Memory of the host for a tensor of a device, and the copies between the two. On a GPU the copies run beside its
/// work; elsewhere each copy has ended when its function returns.
class Staging {
 public:
  explicit Staging(Tensor host) : host_(std::move(host)) {}
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// The memory of the host: a tensor on the CPU with the shape and the dtype of that tensor.
  const Tensor& host() const { return host_; }

  /// Starts the copy to = from, where `from` is on the device and `to` is host() or rows of it. The copy reads `from`
  /// after all work that the device was given before. Until wait() has returned, nothing may change `from`, and nothing
  /// may touch host(). Throws DeviceError.
  virtual void fetch(const Tensor& from, const Tensor& to) = 0;
  /// Waits for the copy of fetch(). May be called by several threads. Throws DeviceError, also if work that the device
  /// was given before has failed.
  virtual void wait() = 0;
  /// Starts the copy to = from, where `from` is host() or rows of it and `to` is on the device. Call it after a fetch()
  /// and its wait(). Work that the device was given since that fetch() may not use `to`; work that it is given later
  /// waits for the copy. host() may change again after the wait() of another fetch(). Throws DeviceError.
  virtual void send(const Tensor& from, const Tensor& to) = 0;

 private:
  Tensor host_;
};

/// Makes a Staging for tensors with the shape, dtype and device of x, which is not on the CPU. On a GPU its memory is
/// pinned if the system grants that; if not, the host waits for the copies. Throws DeviceError.
std::shared_ptr<Staging> make_staging(const Tensor& x);
/// The same for a GPU. kernels/cuda implements it; cuda_missing.cpp stands for it in a build without CUDA.
std::shared_ptr<Staging> make_cuda_staging(const Tensor& x);

}  // namespace attune
