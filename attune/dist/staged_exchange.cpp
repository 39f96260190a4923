#include "attune/dist/staged_exchange.h"

#include <utility>

namespace attune {
namespace {

// What returns to the device when an operation on the host is over.
class CopiedBack final : public Pending::State {
 public:
  CopiedBack(Pending pending, Tensor from, Tensor to)
      : pending_(std::move(pending)), from_(std::move(from)), to_(std::move(to)) {}

  double wait() override {
    const double seconds = pending_.wait();
    to_.copy_from(from_);
    return seconds;
  }

 private:
  Pending pending_;
  Tensor from_, to_;
};

}  // namespace

Tensor StagedExchange::part_of(const Tensor& x) const {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  return x.rows(part_begin(x.numel(), rank, ranks), part_begin(x.numel(), rank + 1, ranks));
}

Pending StagedExchange::start_all_reduce(const Tensor& x) {
  if (x.device().is_host()) return communicator_.start_all_reduce(x, algorithm_);
  const Tensor host = x.to(Cpu{});
  return Pending(std::make_shared<CopiedBack>(communicator_.start_all_reduce(host, algorithm_), host, x.detach()));
}

Pending StagedExchange::start_reduce_scatter(const Tensor& x) {
  if (x.device().is_host()) return communicator_.start_reduce_scatter(x, algorithm_);
  const Tensor host = x.to(Cpu{});
  return Pending(
      std::make_shared<CopiedBack>(communicator_.start_reduce_scatter(host, algorithm_), part_of(host), part_of(x)));
}

Pending StagedExchange::start_all_gather(const Tensor& x) {
  if (x.device().is_host()) return communicator_.start_all_gather(x, algorithm_);
  const Tensor host = Tensor::empty(x.shape(), {.dtype = x.dtype()});
  part_of(host).copy_from(part_of(x));
  return Pending(std::make_shared<CopiedBack>(communicator_.start_all_gather(host, algorithm_), host, x.detach()));
}

void StagedExchange::broadcast(const Tensor& x, int root) {
  const bool sends = communicator_.rank() == root, in_place = x.device().is_host();
  const Tensor host = sends || in_place ? x.to(Cpu{}) : Tensor::empty(x.shape(), {.dtype = x.dtype()});
  communicator_.broadcast(Numbers(host).bytes(), root);
  if (!sends && !in_place) x.copy_from(host);
}

}  // namespace attune
