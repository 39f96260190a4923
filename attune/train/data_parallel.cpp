#include "attune/train/data_parallel.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "attune/base/fail.h"
#include "attune/base/rounding.h"
#include "attune/kernels/reduce.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

int64_t default_bucket_bytes(const std::vector<NamedParameter>& parameters) {
  int64_t all = 0;
  for (const NamedParameter& p : parameters) all += static_cast<int64_t>(p.tensor->bytes());
  return std::clamp<int64_t>(all / 8, int64_t{1} << 20, int64_t{25} << 20);
}

Device device_of(const std::vector<NamedParameter>& parameters) {
  return parameters.empty() ? Device{} : parameters.front().tensor->device();
}

Tensor flattened(const Tensor& x) {
  return x.detach().reshape({x.numel()});
}

}  // namespace

DataParallel::DataParallel(Communicator& communicator, std::vector<NamedParameter> parameters,
                           const DataParallelOptions& options, std::unique_ptr<TensorExchange> exchange)
    : communicator_(communicator), parameters_(std::move(parameters)), shard_(options.shard) {
  exchange_ =
      exchange ? std::move(exchange) : make_tensor_exchange(communicator, device_of(parameters_), options.algorithm);
  make_buckets(options.bucket_bytes > 0 ? options.bucket_bytes : default_bucket_bytes(parameters_));
  bytes_before_ = all_bytes_sent();
}

// Parameters are never cut: a large one is a bucket of its own.
void DataParallel::make_buckets(int64_t bucket_bytes) {
  int64_t size = 0;
  const auto close = [&] {
    if (places_.empty() || (!buckets_.empty() && buckets_.back().last == places_.size())) return;
    const size_t first = buckets_.empty() ? 0 : buckets_.back().last;
    const int64_t whole = round_up(size, exchange_->unit());
    buckets_.push_back({.flat = Tensor::zeros({whole}, {parameter(places_[first]).dtype(), device_of(parameters_)}),
                        .first = first,
                        .last = places_.size(),
                        .missing = places_.size() - first});
    size = 0;
  };
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& next = *parameters_[i].tensor;
    const bool same_type = places_.empty() || parameter(places_.back()).dtype() == next.dtype();
    if (!same_type || (size > 0 && (size + next.numel()) * static_cast<int64_t>(size_of(next.dtype())) > bucket_bytes))
      close();
    place_of_[next.node().get()] = places_.size();
    places_.push_back({.parameter = i, .bucket = buckets_.size(), .begin = size});
    size += next.numel();
  }
  close();
}

ElementRange DataParallel::owned_part(const Place& place) const {
  const int64_t count = buckets_[place.bucket].flat.numel(), size = parameter(place).numel();
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const auto inside = [&](int64_t i) { return std::clamp<int64_t>(i - place.begin, 0, size); };
  return {inside(part_begin(count, rank, ranks)), inside(part_begin(count, rank + 1, ranks))};
}

std::vector<ElementRange> DataParallel::owned() const {
  if (!shard_) return {};
  std::vector<ElementRange> ranges(parameters_.size());
  for (const Place& place : places_) ranges[place.parameter] = owned_part(place);
  return ranges;
}

void DataParallel::broadcast_parameters(Module& model) const {
  for (const auto& [name, parameter] : named_parameters(model)) exchange_->broadcast(*parameter, 0);
}

Tensor DataParallel::view(const Place& place) const {
  const Tensor& p = parameter(place);
  return buckets_[place.bucket]
      .flat.rows(place.begin, place.begin + p.numel())
      .reshape({p.shape().begin(), p.shape().end()});
}

// From here on the gradient is its place in the bucket, and what held it before is free.
void DataParallel::fill(Place& place) {
  const Tensor g = gradient(parameter(place));
  const Tensor target = view(place);
  place.has_gradient = g.defined();
  place.complete = true;
  if (g.defined()) {
    target.copy_from(g);
  } else {
    target.fill(0);
  }
  set_gradient(parameter(place), target);
  --buckets_[place.bucket].missing;
}

void DataParallel::on_complete(const GradientNode& leaf) {
  const auto found = place_of_.find(&leaf);
  if (found == place_of_.end() || places_[found->second].complete) return;
  fill(places_[found->second]);
  start_complete_buckets();
}

void DataParallel::start_complete_buckets() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) {
    Bucket& bucket = buckets_[next_];
    bucket.pending = shard_ ? exchange_->start_reduce_scatter(bucket.flat) : exchange_->start_all_reduce(bucket.flat);
  }
}

void DataParallel::wait(Bucket& bucket) {
  const auto begin = std::chrono::steady_clock::now();
  cost_.seconds += bucket.pending.wait();
  cost_.exposed += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void DataParallel::reduce(const std::function<void()>& meanwhile) {
  for (Place& place : places_) {
    if (!place.complete) {
      fill(place);
      start_complete_buckets();
    } else if (gradient(parameter(place)).address() != view(place).address()) {
      fail<Error>("backward: something was added to the gradient of {} after it had been said to be complete",
                  parameters_[place.parameter].name);
    }
  }
  if (meanwhile) meanwhile();
  exchange_->all_started();
  for (Bucket& bucket : buckets_) {
    wait(bucket);
    bucket.missing = bucket.last - bucket.first;
  }
  next_ = 0;
  for (Place& place : places_) place.complete = false;
}

void DataParallel::add_squares(const Tensor& sum) const {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  for (const Bucket& bucket : buckets_) {
    const int64_t count = bucket.flat.numel();
    const int64_t begin = part_begin(count, rank, ranks), end = part_begin(count, rank + 1, ranks);
    const Tensor mine = bucket.flat.rows(begin, end);
    dispatch(sum.device(), [&](auto device) { attune::add_squares(device, std::span(&mine, 1), sum); });
  }
}

// Each rank sends its numbers and one bit for each parameter: whether it has a gradient.
UpdateTotals DataParallel::agree(const UpdateTotals& mine) {
  constexpr size_t kNumbers = 6;
  const size_t width = kNumbers + (places_.size() + 63) / 64;
  std::vector<uint64_t> said(width), all(width * static_cast<size_t>(communicator_.size()));
  said[0] = std::bit_cast<uint64_t>(mine.loss);
  said[1] = std::bit_cast<uint64_t>(mine.nll);
  said[2] = static_cast<uint64_t>(mine.failures);
  said[3] = std::bit_cast<uint64_t>(mine.squares);
  said[4] = std::bit_cast<uint64_t>(mine.guided_loss);
  said[5] = std::bit_cast<uint64_t>(mine.r_drop_loss);
  for (size_t i = 0; i < places_.size(); ++i)
    said[kNumbers + i / 64] |= static_cast<uint64_t>(places_[i].has_gradient) << (i % 64);
  communicator_.start_all_gather_bytes(std::as_bytes(std::span(said)), std::as_writable_bytes(std::span(all))).wait();

  UpdateTotals totals;
  std::vector<uint64_t> present(width);
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::span theirs = std::span(all).subspan(static_cast<size_t>(rank) * width, width);
    totals.loss += std::bit_cast<double>(theirs[0]);
    totals.nll += std::bit_cast<double>(theirs[1]);
    if (theirs[2] > 0 && totals.first_failure < 0) totals.first_failure = rank;
    totals.failures += static_cast<int64_t>(theirs[2]);
    totals.squares += std::bit_cast<double>(theirs[3]);
    totals.guided_loss += std::bit_cast<double>(theirs[4]);
    totals.r_drop_loss += std::bit_cast<double>(theirs[5]);
    for (size_t i = kNumbers; i < width; ++i) present[i] |= theirs[i];
  }
  for (size_t i = 0; i < places_.size(); ++i)
    if ((present[kNumbers + i / 64] >> (i % 64) & 1) == 0) clear_gradient(parameter(places_[i]));
  return totals;
}

std::vector<int64_t> DataParallel::sum(const std::vector<int64_t>& mine) const {
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(communicator_.size())), sums(mine.size());
  if (mine.empty()) return sums;
  communicator_.start_all_gather_bytes(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))).wait();
  for (size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
  return sums;
}

// Sends the parameters in the buckets: the gradients in them have been used.
void DataParallel::share_parameters() {
  if (!shard_) return;
  for (const Place& place : places_) {
    const ElementRange mine = owned_part(place);
    flattened(view(place)).rows(mine.begin, mine.end).copy_from(flattened(parameter(place)).rows(mine.begin, mine.end));
  }
  for (Bucket& bucket : buckets_) bucket.pending = exchange_->start_all_gather(bucket.flat);
  exchange_->all_started();
  for (Bucket& bucket : buckets_) {
    wait(bucket);
    for (size_t i = bucket.first; i < bucket.last; ++i) parameter(places_[i]).copy_from(view(places_[i]));
  }
}

std::vector<AdamState> DataParallel::gather_states(const Adam& adam) const {
  const bool root = communicator_.rank() == 0;
  if (!shard_) return root ? adam.states() : std::vector<AdamState>{};
  std::vector<AdamState> whole;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const AdamState& mine = adam.states()[i];
    const Tensor& parameter = *parameters_[i].tensor;
    const auto gathered = [&](const Tensor& part) {
      if (!part.defined()) return Tensor{};
      const auto parts = communicator_.gather(part.to(Cpu{}).host_bytes(), 0);
      if (!root) return Tensor{};
      const Tensor all = Tensor::empty(parameter.shape(), {.dtype = parameter.dtype()});
      int64_t begin = 0;
      for (const std::vector<std::byte>& bytes : parts) {  // ranges ascend with the ranks
        const int64_t end = begin + static_cast<int64_t>(bytes.size() / size_of(all.dtype()));
        flattened(all).rows(begin, end).assign_bytes(bytes);
        begin = end;
      }
      return all;
    };
    AdamState state{.name = mine.name,
                    .m = gathered(mine.m),
                    .v = gathered(mine.v),
                    .average = gathered(mine.average),
                    .range = {0, parameter.numel()}};
    if (root) whole.push_back(std::move(state));
  }
  return whole;
}

CommunicationCost DataParallel::take_cost() {
  cost_.bytes_sent = all_bytes_sent() - std::exchange(bytes_before_, all_bytes_sent());
  return std::exchange(cost_, {});
}

}  // namespace attune
