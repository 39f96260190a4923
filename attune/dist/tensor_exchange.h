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

  /// Every rank calls this between the last start of an update and the first wait(). It notices a rank that has failed,
  /// and wait() then counts no time in which this rank still computes. Throws also the error of this rank's own kernels
  /// where they failed.
  virtual void all_started() = 0;

  virtual int64_t unit() const = 0;
  /// Bytes that this rank has sent so far, without those that the Communicator counts.
  virtual int64_t bytes_sent() const = 0;
  /// How the tensors travel, for the user; "": there is only one way, so that nothing is said.
  virtual std::string text() const = 0;
};

/// Returns an exchange by NCCL where every rank has a GPU of its own and the same version of that library, else one by
/// the communicator, through the memory of the host, with this algorithm. All ranks call it, with the device that each
/// computes on; the communicator must outlive what is returned. Throws DeviceError, CommunicationError.
std::unique_ptr<TensorExchange> make_tensor_exchange(Communicator& communicator, const Device& device,
                                                     Algorithm algorithm = Algorithm::fixed);

}  // namespace attune
