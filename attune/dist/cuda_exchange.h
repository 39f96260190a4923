#pragma once

#include "attune/dist/tensor_exchange.h"
#include "attune/tensor/cuda_group.h"

namespace attune {

/// Why the ranks cannot exchange tensors from GPU to GPU, the same on all; "": they can. All ranks call it, with the
/// GPU that each has and the library that it found. Throws CommunicationError.
std::string why_not_from_gpu_to_gpu(Communicator& communicator, const CudaIdentity& gpu, const CudaLibrary& library);

/// Tensors go from GPU to GPU, by NCCL.
class CudaExchange final : public TensorExchange {
 public:
  /// The first rank has made the id. Returns when all ranks have called it. The communicator must outlive this. Throws
  /// CommunicationError.
  CudaExchange(Communicator& communicator, Cuda device, const CudaGroupId& id, std::string text);

  Pending start_all_reduce(const Tensor& x) override;
  Pending start_reduce_scatter(const Tensor& x) override;
  Pending start_all_gather(const Tensor& x) override;
  void broadcast(const Tensor& x, int root) override;
  /// A GPU waits forever for a rank that has failed, but the communicator notices one. So each rank waits for what its
  /// own GPU computes, and then all meet in a barrier of the communicator.
  void all_started() override;
  /// Parts are of one size, and begin at multiples of 16 bytes.
  int64_t unit() const override { return int64_t{4} * communicator_.size(); }
  /// Computed, not counted: what each rank of a ring sends. Broadcasts are left out.
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::string text() const override { return text_; }

 private:
  int64_t share_of(const Tensor& x) const;

  Communicator& communicator_;
  std::string text_;
  std::unique_ptr<CudaGroup> group_;
  int64_t bytes_sent_ = 0;
};

}  // namespace attune
