#include "tests/support/in_process_ranks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/dist/network_collectives.h"
#include "attune/dist/point_to_point_communicator.h"

namespace attune {
namespace {

// Messages on their way, by sender and receiver.
class Post {
 public:
  void send(int from, int to, std::span<const std::byte> message) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to}].emplace_back(message.begin(), message.end());
    arrived_.notify_all();
  }
  void receive(int from, int to, std::span<std::byte> message) {
    std::unique_lock lock(mutex_);
    std::deque<std::vector<std::byte>>& box = boxes_[{from, to}];
    const bool in_time = arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !box.empty() || aborted_; });
    if (!in_time) fail<CommunicationError>("rank {} waited for rank {} in vain", to, from);
    if (box.empty()) fail<CommunicationError>("another rank has failed");
    if (box.front().size() != message.size())
      fail<CommunicationError>("rank {} expects {} bytes, rank {} sent {}", to, message.size(), from,
                               box.front().size());
    if (!message.empty()) std::memcpy(message.data(), box.front().data(), message.size());
    box.pop_front();
  }
  void abort() {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    arrived_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> boxes_;
  bool aborted_ = false;
};

template <class T>
void add_numbers(std::span<const std::byte> from, std::span<std::byte> to) {
  for (size_t at = 0; at < to.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, from.data() + at, sizeof(T));
    std::memcpy(&b, to.data() + at, sizeof(T));
    b += a;
    std::memcpy(to.data() + at, &b, sizeof(T));
  }
}

class ThreadTransport final : public Transport, public NetworkCollectives {
 public:
  ThreadTransport(Post& post, int rank, int size, std::atomic<int64_t>* library_calls)
      : post_(post), rank_(rank), size_(size), library_calls_(library_calls) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    if (to != kNobody) post_.send(rank_, to, out);
    if (from != kNobody) post_.receive(from, rank_, in);
  }
  void abort(int) override { post_.abort(); }
  NetworkCollectives* collectives() override { return library_calls_ != nullptr ? this : nullptr; }

  // The ranks send each other all numbers, and add them up in the order of the ranks.
  void all_reduce(const Numbers& x, std::vector<std::byte>& scratch) override {
    ++*library_calls_;
    const std::span<std::byte> sum = x.bytes();
    const std::vector<std::byte> mine(sum.begin(), sum.end());
    send_to_others(mine);
    scratch.resize(sum.size());
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) post_.receive(rank, rank_, scratch);
      const std::span<const std::byte> numbers = rank == rank_ ? mine : scratch;
      if (rank == 0)
        std::ranges::copy(numbers, sum.begin());
      else
        x.dtype == DType::f64 ? add_numbers<double>(numbers, sum) : add_numbers<float>(numbers, sum);
    }
  }
  void reduce_scatter(const Numbers& x, std::vector<std::byte>& scratch) override { all_reduce(x, scratch); }
  void all_gather(const Numbers& x) override {
    ++*library_calls_;
    send_to_others(part_of(x, rank_, size_).bytes());
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) post_.receive(rank, rank_, part_of(x, rank, size_).bytes());
  }

 private:
  void send_to_others(std::span<const std::byte> message) {
    for (int rank = 0; rank < size_; ++rank)
      if (rank != rank_) post_.send(rank_, rank, message);
  }
  Post& post_;
  int rank_, size_;
  std::atomic<int64_t>* library_calls_;
};

}  // namespace

void run_in_process(int ranks, const std::function<void(Communicator&)>& body, std::atomic<int64_t>* library_calls) {
  Post post;
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const ThreadScope one_thread(1);
        PointToPointCommunicator communicator(
            [&] { return std::make_unique<ThreadTransport>(post, rank, ranks, library_calls); });
        try {
          body(communicator);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
          communicator.abort(1);
        }
      });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace attune
