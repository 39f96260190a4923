#pragma once
// Communication between the processes ("ranks") of a training run. Every rank calls the same operations in the same
// order. Operations work in place; the caller must not touch their memory until wait() has returned.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// float32 or float64 numbers in host memory. The numbers of a tensor are kept alive until the operation is over; the
/// caller keeps those of a span alive.
struct Numbers {
  std::byte* data = nullptr;
  int64_t count = 0;
  DType dtype = DType::f32;
  Tensor owner = {};

  Numbers(std::byte* data_, int64_t count_, DType dtype_) : data(data_), count(count_), dtype(dtype_) {}
  Numbers(std::span<float> x) : Numbers(std::as_writable_bytes(x).data(), std::ssize(x), DType::f32) {}
  Numbers(std::span<double> x) : Numbers(std::as_writable_bytes(x).data(), std::ssize(x), DType::f64) {}
  /// Throws ShapeError unless x is on the CPU.
  Numbers(const Tensor& x) : Numbers(x.host_bytes().data(), x.numel(), x.dtype()) { owner = x.detach(); }

  /// The elements [begin, end).
  Numbers part(int64_t begin, int64_t end) const {
    return {data + begin * static_cast<int64_t>(size_of(dtype)), end - begin, dtype};
  }
  std::span<std::byte> bytes() const { return {data, static_cast<size_t>(count) * size_of(dtype)}; }
};

/// The first element of the part of `rank` when `count` elements are divided among `ranks`; part_begin(count, ranks,
/// ranks) is `count`.
int64_t part_begin(int64_t count, int64_t rank, int64_t ranks);
/// That part of x.
Numbers part_of(const Numbers& x, int64_t rank, int64_t ranks);

/// An operation that runs while the caller does something else.
class Pending {
 public:
  class State {
   public:
    virtual ~State() = default;
    virtual double wait() = 0;
  };

  Pending() = default;  // an operation that is done
  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Waits until the operation is complete. Returns the seconds that it took, including the time in which other ranks
  /// were not ready. Throws the error of the operation.
  double wait() { return state_ ? std::exchange(state_, {})->wait() : 0; }

 private:
  std::shared_ptr<State> state_;
};

/// Which algorithm forms a sum or a gather, and so decides the order of the additions.
enum class Algorithm {
  fixed,      // Attune's own: the order depends only on the number of ranks and the number of elements
  of_network  // that of the network's library, where it has one (MPI); else as fixed
};

/// With Algorithm::fixed, sums are bitwise the same on every rank, and in every run with the same number of ranks. With
/// Algorithm::of_network they are the same on every rank; another run may add in another order. All ranks give the same
/// algorithm. Throws CommunicationError.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // from 0
  virtual int size() const = 0;
  /// Whether Algorithm::of_network differs from Algorithm::fixed here.
  virtual bool has_network_algorithm() const { return false; }

  /// x = the sum of every rank's x. With Algorithm::fixed: start_reduce_scatter(), then start_all_gather().
  virtual Pending start_all_reduce(Numbers x, Algorithm algorithm = Algorithm::fixed) = 0;
  /// The elements [part_begin(count, rank), part_begin(count, rank + 1)) become the sum over the ranks; the others are
  /// undefined afterwards.
  virtual Pending start_reduce_scatter(Numbers x, Algorithm algorithm = Algorithm::fixed) = 0;
  /// Every rank has its part of x, divided in the same way, and gets the parts of the others.
  virtual Pending start_all_gather(Numbers x, Algorithm algorithm = Algorithm::fixed) = 0;
  /// Calls `body` on another thread, between the operations that were started before and those that are started later;
  /// a process alone calls it at once. Other ranks need not do the same. What it throws is the error of this operation,
  /// and of all later ones.
  virtual Pending start_call(std::function<void()> body) = 0;
  /// Every rank gets the x of the root.
  virtual Pending start_broadcast(std::span<std::byte> x, int root) = 0;
  /// `mine` has the same size on every rank; `all` receives them in the order of the ranks. For small pieces: takes
  /// log2(size) messages one after the other.
  virtual Pending start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// The root gets the bytes of every rank, in the order of the ranks; their numbers may differ.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) = 0;

  /// Bytes that this rank has sent so far. A network's library does not say what it sends: its operations are counted
  /// as those of Algorithm::fixed.
  virtual int64_t bytes_sent() const = 0;
  /// Ends the run. Over MPI all processes end at once, this one with `status`. Over TCP no process ends: the operations
  /// that the ranks wait for throw, and so do later ones.
  virtual void abort(int status) = 0;

  void all_reduce(Numbers x, Algorithm algorithm = Algorithm::fixed) {
    start_all_reduce(std::move(x), algorithm).wait();
  }
  void reduce_scatter(Numbers x, Algorithm algorithm = Algorithm::fixed) {
    start_reduce_scatter(std::move(x), algorithm).wait();
  }
  void all_gather(Numbers x, Algorithm algorithm = Algorithm::fixed) {
    start_all_gather(std::move(x), algorithm).wait();
  }
  void broadcast(std::span<std::byte> x, int root = 0) { start_broadcast(x, root).wait(); }
  std::string broadcast(const std::string& text, int root = 0);
  void barrier();

  /// Every rank's `mine`, a plain struct of numbers, by rank.
  template <class T>
  std::vector<T> all_gather_values(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<size_t>(size()));
    start_all_gather_bytes(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))).wait();
    return all;
  }
};

/// A single rank: every operation is complete at once.
class LocalCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Pending start_all_reduce(Numbers, Algorithm) override { return {}; }
  Pending start_reduce_scatter(Numbers, Algorithm) override { return {}; }
  Pending start_all_gather(Numbers, Algorithm) override { return {}; }
  Pending start_call(std::function<void()> body) override {
    body();
    return {};
  }
  Pending start_broadcast(std::span<std::byte>, int) override { return {}; }
  Pending start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;
  int64_t bytes_sent() const override { return 0; }
  void abort(int) override {}
};

}  // namespace attune
