#include "attune/dist/staged_exchange.h"

#include <algorithm>
#include <utility>

namespace attune {
namespace {

// An operation on the host, whose result wait() sends back to the device.
class CopiedBack final : public Pending::State {
 public:
  CopiedBack(Pending pending, std::shared_ptr<Staging> staging, Tensor from, Tensor to)
      : pending_(std::move(pending)), staging_(std::move(staging)), from_(std::move(from)), to_(std::move(to)) {}

  double wait() override {
    const double seconds = pending_.wait();
    staging_->send(from_, to_);
    return seconds;
  }

 private:
  Pending pending_;
  std::shared_ptr<Staging> staging_;
  Tensor from_, to_;
};

}  // namespace

Tensor StagedExchange::part_of(const Tensor& x, Part part) const {
  if (part == Part::whole) return x.detach();
  const int rank = communicator_.rank(), ranks = communicator_.size();
  return x.rows(part_begin(x.numel(), rank, ranks), part_begin(x.numel(), rank + 1, ranks));
}

std::shared_ptr<Staging> StagedExchange::staging_for(const Tensor& x) {
  const auto free = std::ranges::find_if(stagings_, [&](const std::shared_ptr<Staging>& one) {
    return one.use_count() == 1 && one->host().shape() == x.shape() && one->host().dtype() == x.dtype();
  });
  return free != stagings_.end() ? *free : stagings_.emplace_back(make_staging(x));
}

// The thread of the communicator waits for the copy before it begins the operation. The thread that gives the device
// its work does not wait.
Pending StagedExchange::start(const Tensor& x, Part fetched, Part returned,
                              const std::function<Pending(const Tensor& on_host)>& operation) {
  if (x.device().is_host()) return operation(x);
  const std::shared_ptr<Staging> staging = staging_for(x);
  const Tensor& host = staging->host();
  const Tensor from = part_of(x, fetched);
  staging->fetch(from, part_of(host, fetched));
  fetched_last_ = staging;
  communicator_.start_call([staging, from] { staging->wait(); });
  return Pending(std::make_shared<CopiedBack>(operation(host), staging, part_of(host, returned), part_of(x, returned)));
}

Pending StagedExchange::start_all_reduce(const Tensor& x) {
  return start(x, Part::whole, Part::whole,
               [&](const Tensor& on_host) { return communicator_.start_all_reduce(on_host, algorithm_); });
}

Pending StagedExchange::start_reduce_scatter(const Tensor& x) {
  return start(x, Part::whole, Part::own,
               [&](const Tensor& on_host) { return communicator_.start_reduce_scatter(on_host, algorithm_); });
}

Pending StagedExchange::start_all_gather(const Tensor& x) {
  return start(x, Part::own, Part::whole,
               [&](const Tensor& on_host) { return communicator_.start_all_gather(on_host, algorithm_); });
}

// Waits for the last copy: copies from a device end in the order in which they were started.
void StagedExchange::all_started() {
  if (fetched_last_) std::exchange(fetched_last_, nullptr)->wait();
}

void StagedExchange::broadcast(const Tensor& x, int root) {
  const bool sends = communicator_.rank() == root, in_place = x.device().is_host();
  const Tensor host = sends || in_place ? x.to(Cpu{}) : Tensor::empty(x.shape(), {.dtype = x.dtype()});
  communicator_.broadcast(Numbers(host).bytes(), root);
  if (!sends && !in_place) x.copy_from(host);
}

}  // namespace attune
