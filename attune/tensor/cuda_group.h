#pragma once
// GPUs of several processes that exchange tensors among themselves, without the host. kernels/cuda implements it by
// NVIDIA's NCCL; cuda_missing.cpp stands for it in a build without CUDA.

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "attune/tensor/tensor.h"

namespace attune {

/// An identifier that no other GPU has, on this machine or another.
using CudaIdentity = std::array<std::byte, 16>;
/// Throws DeviceError.
CudaIdentity identity_of(Cuda device);

struct CudaLibrary {
  std::string name = {};     // with its version, which all members of a group must share
  std::string missing = {};  // why this process cannot use it; "": it can
};
CudaLibrary cuda_group_library();

/// What the members of a group need to find each other. One of them makes it and tells the others.
using CudaGroupId = std::array<std::byte, 128>;
/// Throws CommunicationError.
CudaGroupId make_cuda_group_id();

/// The GPU of this process among those of a group. All members call the same operations in the same order, with tensors
/// [n] of the same n. An operation reads x after all work that the GPU was given before, and runs beside the work that
/// it is given afterwards; nothing may touch x until wait() has returned. Sums are the same on every member. Throws
/// CommunicationError, which names the operation.
class CudaGroup {
 public:
  class Operation {
   public:
    /// Ends all operations of the group if this one has not been waited for.
    virtual ~Operation() = default;
    /// Waits for the end of the operation. Returns the seconds that it took, including the time in which other members
    /// were not ready. Throws CommunicationError, also when another member has failed.
    virtual double wait() = 0;
  };

  virtual ~CudaGroup() = default;

  /// x = the sum of every member's x; float32 or float64.
  virtual std::shared_ptr<Operation> all_reduce(const Tensor& x) = 0;
  /// n is a multiple of the number of members. Part `rank` of x, when x is divided evenly, becomes that part of the
  /// sum; the others are undefined afterwards. float32 or float64.
  virtual std::shared_ptr<Operation> reduce_scatter(const Tensor& x) = 0;
  /// n as above. Every member has its part of x, and gets those of the others. float32 or float64.
  virtual std::shared_ptr<Operation> all_gather(const Tensor& x) = 0;
  /// Every member gets the x of the root; any shape and dtype.
  virtual std::shared_ptr<Operation> broadcast(const Tensor& x, int root) = 0;
  /// Waits for the work that the GPU was given outside of the group, not for the operations of the group. Throws
  /// DeviceError.
  virtual void synchronize() = 0;
};

/// Returns when all members have called it. Calls `meet` when this member is ready. If `meet` waits for all members,
/// none of them waits in the library for a member that has failed before.
std::unique_ptr<CudaGroup> join_cuda_group(
    Cuda device, const CudaGroupId& id, int rank, int size, const std::function<void()>& meet = [] {});

}  // namespace attune
