#include "attune/dist/point_to_point_communicator.h"

#include <chrono>
#include <exception>

#include "attune/dist/collectives.h"

namespace attune {

class PointToPointCommunicator::Operation final : public Pending::State {
 public:
  explicit Operation(std::function<void()> body) : body_(std::move(body)) {}

  double wait() override {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return done_; });
    if (error_) std::rethrow_exception(error_);
    return seconds_;
  }

  // Runs the body. Where an earlier operation has failed, does not run it and fails with the same `error`. Returns the
  // error of this operation, or null.
  std::exception_ptr run(std::exception_ptr error) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      if (!error) body_();
    } catch (...) {
      error = std::current_exception();
    }
    body_ = {};  // and with it the memory it holds
    const std::lock_guard lock(mutex_);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    error_ = error;
    done_ = true;
    finished_.notify_all();
    return error;
  }

 private:
  std::function<void()> body_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  double seconds_ = 0;
  std::exception_ptr error_;
};

// Counts what is sent.
class PointToPointCommunicator::Counted final : public Transport {
 public:
  Counted(std::unique_ptr<Transport> inner, std::atomic<int64_t>& bytes) : inner_(std::move(inner)), bytes_(bytes) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    inner_->exchange(to, out, from, in);
    if (to != kNobody) bytes_ += std::ssize(out);
  }
  NetworkCollectives* collectives() override { return inner_->collectives(); }
  void abort(int status) override { inner_->abort(status); }

 private:
  std::unique_ptr<Transport> inner_;
  std::atomic<int64_t>& bytes_;
};

PointToPointCommunicator::PointToPointCommunicator(MakeTransport make_transport) {
  const auto made =
      std::make_shared<Operation>([&] { transport_ = std::make_unique<Counted>(make_transport(), bytes_sent_); });
  thread_ = std::jthread([this, made] { work(made); });
  made->wait();  // where it throws, the thread ends
}

PointToPointCommunicator::~PointToPointCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(nullptr);
  }
  arrived_.notify_one();
}

void PointToPointCommunicator::work(const std::shared_ptr<Operation>& make_transport) {
  std::exception_ptr error = make_transport->run(nullptr);
  while (transport_) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !queue_.empty(); });
    const std::shared_ptr<Operation> next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (next) error = next->run(error);
    if (!next) transport_.reset();
  }
}

Pending PointToPointCommunicator::start_call(std::function<void()> body) {
  const auto operation = std::make_shared<Operation>(std::move(body));
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(operation);
  }
  arrived_.notify_one();
  return Pending(operation);
}

Pending PointToPointCommunicator::start_with(const Numbers& x, Algorithm algorithm, int64_t shares,
                                             std::function<void(NetworkCollectives&)> by_library,
                                             std::function<void()> by_messages) {
  return start_call(
      [this, x, algorithm, shares, by_library = std::move(by_library), by_messages = std::move(by_messages)] {
        const bool countable = x.count > 0 && x.count <= NetworkCollectives::kMostNumbers;
        NetworkCollectives* const library =
            algorithm == Algorithm::of_network && countable ? transport_->collectives() : nullptr;
        if (library == nullptr) return by_messages();
        by_library(*library);
        bytes_sent_ += shares * (std::ssize(x.bytes()) - std::ssize(part_of(x, rank(), size()).bytes()));
      });
}

Pending PointToPointCommunicator::start_all_reduce(Numbers x, Algorithm algorithm) {
  return start_with(
      x, algorithm, 2, [this, x](NetworkCollectives& library) { library.all_reduce(x, scratch_); },
      [this, x] {
        attune::reduce_scatter(*transport_, x, scratch_);
        attune::all_gather(*transport_, x);
      });
}
Pending PointToPointCommunicator::start_reduce_scatter(Numbers x, Algorithm algorithm) {
  return start_with(
      x, algorithm, 1, [this, x](NetworkCollectives& library) { library.reduce_scatter(x, scratch_); },
      [this, x] { attune::reduce_scatter(*transport_, x, scratch_); });
}
Pending PointToPointCommunicator::start_all_gather(Numbers x, Algorithm algorithm) {
  return start_with(
      x, algorithm, 1, [x](NetworkCollectives& library) { library.all_gather(x); },
      [this, x] { attune::all_gather(*transport_, x); });
}
Pending PointToPointCommunicator::start_broadcast(std::span<std::byte> x, int root) {
  return start_call([this, x, root] { attune::broadcast(*transport_, x, root); });
}
Pending PointToPointCommunicator::start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  return start_call([this, mine, all] { attune::all_gather_bytes(*transport_, mine, all); });
}

std::vector<std::vector<std::byte>> PointToPointCommunicator::gather(std::span<const std::byte> mine, int root) {
  std::vector<std::vector<std::byte>> all;
  start_call([&] { all = attune::gather(*transport_, mine, root); }).wait();
  return all;
}

}  // namespace attune
