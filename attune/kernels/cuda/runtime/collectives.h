#pragma once
// All that is asked of NCCL. collectives_gpu.cpp calls the library, collectives_missing.cpp stands for it in a build
// without its header, and collectives_emulated.cpp in the emulation.

#include <cstdint>
#include <memory>

#include "attune/kernels/cuda/runtime/streams.h"
#include "attune/tensor/cuda_group.h"

namespace attune::cuda {

struct Collective {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast };

  Kind kind;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;        // elements of the tensor; reduce_scatter and all_gather: of one part of it
  DType type = DType::f32;  // float32 or float64; also uint8 where nothing is added
  int root = 0;             // of broadcast
};

/// "all_reduce", and so on.
const char* name_of(Collective::Kind kind);

/// One member of a group of GPUs.
class Member {
 public:
  /// Does what abort() does.
  virtual ~Member() = default;
  /// Gives the operation to the stream. Throws CommunicationError.
  virtual void start(const Collective& collective, const SideStream& stream) = 0;
  /// Throws CommunicationError, which names `kind`, if an operation that was started has failed since.
  virtual void check(Collective::Kind kind) = 0;
  /// Ends the operations that have not ended; nothing can be started afterwards. Does not wait for the other members
  /// while an exception unwinds the stack.
  virtual void abort() noexcept = 0;
};

/// See cuda_group_library(), make_cuda_group_id() and join_cuda_group(). join() is called with the device current.
CudaLibrary collectives_library();
CudaGroupId make_group_id();
std::unique_ptr<Member> join(Cuda device, const CudaGroupId& id, int rank, int size);

}  // namespace attune::cuda
