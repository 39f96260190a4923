#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "attune/dist/communicator.h"
#include "attune/dist/network_collectives.h"
#include "attune/dist/transport.h"

namespace attune {

/// Runs the operations one after the other, in the order in which they were started, on a thread of its own: they
/// progress while the caller computes, and only that thread makes, uses and destroys the transport. After an operation
/// has failed, every later one fails with the same error.
class PointToPointCommunicator final : public Communicator {
 public:
  using MakeTransport = std::function<std::unique_ptr<Transport>()>;

  /// Returns when the transport is made. Throws what `make_transport` throws.
  explicit PointToPointCommunicator(MakeTransport make_transport);
  /// Finishes the operations that were started.
  ~PointToPointCommunicator() override;
  PointToPointCommunicator(const PointToPointCommunicator&) = delete;
  PointToPointCommunicator& operator=(const PointToPointCommunicator&) = delete;

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  bool has_network_algorithm() const override { return transport_->collectives() != nullptr; }
  Pending start_all_reduce(Numbers x, Algorithm algorithm) override;
  Pending start_reduce_scatter(Numbers x, Algorithm algorithm) override;
  Pending start_all_gather(Numbers x, Algorithm algorithm) override;
  Pending start_call(std::function<void()> body) override;
  Pending start_broadcast(std::span<std::byte> x, int root) override;
  Pending start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;
  int64_t bytes_sent() const override { return bytes_sent_; }
  void abort(int status) override { transport_->abort(status); }

 private:
  class Operation;
  class Counted;

  void work(const std::shared_ptr<Operation>& make_transport);
  /// Starts `by_library` where the algorithm allows it and the network has a library, else `by_messages`. For
  /// bytes_sent(), an operation of the library counts as all parts but this rank's own, sent `shares` times.
  Pending start_with(const Numbers& x, Algorithm algorithm, int64_t shares,
                     std::function<void(NetworkCollectives&)> by_library, std::function<void()> by_messages);

  std::unique_ptr<Transport> transport_;
  std::atomic<int64_t> bytes_sent_{0};
  std::vector<std::byte> scratch_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<Operation>> queue_;  // null: no more will come
  std::jthread thread_;
};

}  // namespace attune
