#pragma once
// How the ranks of a run exchange tensors on the devices that they compute on.

#include <cstdint>
#include <memory>
#include <string>

#include "attune/dist/communicator.h"

namespace attune {

/// Operations are those of Communicator, on tensors [n] of the device that this was made for: float32 or float64, n a
/// multiple of unit(). Every rank calls the same operations in the same order. Nothing may touch a tensor between start
/// and wait(). Throws CommunicationError, which names the operation.
class TensorExchange {
 public:
  virtual ~TensorExchange() = default;

  virtual Pending start_all_reduce(const Tensor& x) = 0;
  virtual Pending start_reduce_scatter(const Tensor& x) = 0;
  virtual Pending start_all_gather(const Tensor& x) = 0;
  /// Every rank gets the x of the root; any shape and dtype.
  virtual void broadcast(const Tensor& x, int root) = 0;

  /// To be called by every rank between the last start of an update and the first wait(), so that a rank that has
  /// failed is noticed, and that wait() counts no time in which this rank computes. Throws what its kernels failed
  /// with, too.
  virtual void all_started() = 0;

  virtual int64_t unit() const = 0;
  /// By this rank so far, beside what goes through the Communicator.
  virtual int64_t bytes_sent() const = 0;
  /// How the tensors travel, for the user; "": there is only one way, so that nothing is said.
  virtual std::string text() const = 0;
};

/// NCCL, where every rank has a GPU of its own and the same version of that library; else by the communicator, through
/// the memory of the host. All ranks call it, with the device that each computes on; the communicator must outlive what
/// is returned. The algorithm is that of the communicator's operations. Throws DeviceError, CommunicationError.
std::unique_ptr<TensorExchange> make_tensor_exchange(Communicator& communicator, const Device& device,
                                                     Algorithm algorithm = Algorithm::fixed);

}  // namespace attune
