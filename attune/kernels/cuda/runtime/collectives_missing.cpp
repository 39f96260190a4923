// NCCL in a build without its header: none.

#include "attune/base/error.h"
#include "attune/kernels/cuda/runtime/collectives.h"

namespace attune::cuda {
namespace {

constexpr const char* kMissing = "Attune was built without NCCL's header, nccl.h";

}  // namespace

CudaLibrary collectives_library() {
  return {.missing = kMissing};
}

CudaGroupId make_group_id() {
  throw CommunicationError(kMissing);
}

std::unique_ptr<Member> join(Cuda /*device*/, const CudaGroupId& /*id*/, int /*rank*/, int /*size*/) {
  throw CommunicationError(kMissing);
}

}  // namespace attune::cuda
