#include "attune/dist/tensor_exchange.h"

#include <fmt/format.h>

#include <span>

#include "attune/base/error.h"
#include "attune/dist/cuda_exchange.h"
#include "attune/dist/staged_exchange.h"

namespace attune {
namespace {

struct SharedId {
  CudaGroupId id{};
  std::string problem;  // why there is none
};

// The first rank makes it and tells the others.
SharedId shared_id(Communicator& communicator) {
  SharedId made;
  if (communicator.rank() == 0) try {
      made.id = make_cuda_group_id();
    } catch (const CommunicationError& error) {
      made.problem = error.what();
    }
  made.problem = communicator.broadcast(made.problem);
  communicator.broadcast(std::span(made.id));
  return made;
}

}  // namespace

std::unique_ptr<TensorExchange> make_tensor_exchange(Communicator& communicator, const Device& device,
                                                     Algorithm algorithm) {
  if (communicator.size() == 1 || device.kind() != Device::Kind::cuda)
    return std::make_unique<StagedExchange>(communicator, algorithm);
  const Cuda gpu{device.index()};
  const CudaLibrary library = cuda_group_library();
  std::string why_not = why_not_from_gpu_to_gpu(communicator, identity_of(gpu), library);
  SharedId shared;
  if (why_not.empty()) {
    shared = shared_id(communicator);
    why_not = shared.problem;
  }
  if (!why_not.empty())
    return std::make_unique<StagedExchange>(communicator, algorithm,
                                            fmt::format("gradients go through the memory of the host: {}", why_not));
  return std::make_unique<CudaExchange>(
      communicator, gpu, shared.id,
      fmt::format("gradients go from GPU to GPU, by {}: each of {} ranks has one of its own", library.name,
                  communicator.size()));
}

}  // namespace attune
