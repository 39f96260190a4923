#include "attune/dist/cuda_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace attune {
namespace {

class OfGroup final : public Pending::State {
 public:
  explicit OfGroup(std::shared_ptr<CudaGroup::Operation> operation) : operation_(std::move(operation)) {}
  double wait() override { return operation_->wait(); }

 private:
  std::shared_ptr<CudaGroup::Operation> operation_;
};

Pending pending(std::shared_ptr<CudaGroup::Operation> operation) {
  return Pending(std::make_shared<OfGroup>(std::move(operation)));
}

// What the ranks tell each other.
struct Said {
  CudaIdentity gpu{};
  std::array<char, 64> library{};  // its name, cut off where it is longer
  bool missing = false;
};

}  // namespace

std::string why_not_from_gpu_to_gpu(Communicator& communicator, const CudaIdentity& gpu, const CudaLibrary& library) {
  Said mine{.gpu = gpu, .missing = !library.missing.empty()};
  library.name.copy(mine.library.data(), mine.library.size() - 1);
  const std::vector<Said> all = communicator.all_gather_values(mine);
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (size_t other = 0; other < rank; ++other)
      if (all[rank].gpu == all[other].gpu) return fmt::format("ranks {} and {} share a GPU", other, rank);
  const auto without = std::ranges::find(all, true, &Said::missing) - all.begin();
  if (const auto rank = static_cast<int>(without); rank < communicator.size())
    return fmt::format("rank {}: {}", rank, communicator.broadcast(library.missing, rank));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank].library != all[0].library)
      return fmt::format("rank 0 has {}, rank {} has {}", all[0].library.data(), rank, all[rank].library.data());
  return "";
}

CudaExchange::CudaExchange(Communicator& communicator, Cuda device, const CudaGroupId& id, std::string text)
    : communicator_(communicator),
      text_(std::move(text)),
      group_(join_cuda_group(device, id, communicator.rank(), communicator.size(), [&] { communicator.barrier(); })) {}

// The bytes of all parts but one's own.
int64_t CudaExchange::share_of(const Tensor& x) const {
  return static_cast<int64_t>(x.bytes()) / communicator_.size() * (communicator_.size() - 1);
}

Pending CudaExchange::start_all_reduce(const Tensor& x) {
  bytes_sent_ += 2 * share_of(x);
  return pending(group_->all_reduce(x));
}

Pending CudaExchange::start_reduce_scatter(const Tensor& x) {
  bytes_sent_ += share_of(x);
  return pending(group_->reduce_scatter(x));
}

Pending CudaExchange::start_all_gather(const Tensor& x) {
  bytes_sent_ += share_of(x);
  return pending(group_->all_gather(x));
}

void CudaExchange::broadcast(const Tensor& x, int root) {
  const std::shared_ptr<CudaGroup::Operation> operation = group_->broadcast(x, root);
  all_started();
  operation->wait();
}

void CudaExchange::all_started() {
  group_->synchronize();  // a rank whose kernels have failed says so before the others wait for its part
  communicator_.barrier();
}

}  // namespace attune
