// Built where MPI was found; else mpi_transport_missing.cpp is.

#include "attune/dist/mpi_transport.h"

#define OMPI_SKIP_MPICXX 1  // the C interface alone
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/patience.h"
#include "attune/dist/network_collectives.h"

namespace attune {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<CommunicationError>("{}: {}", call, text);
}

class MpiSession {
 public:
  MpiSession() {
    // With Open MPI's default over TCP, "put", a receiver's request for the next piece waits behind the data that it
    // sends itself: an exchange goes one way after the other and takes twice the time. A value that the user has set
    // stays.
    ::setenv("OMPI_MCA_btl_tcp_flags", "send", 0);
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED) {
      MPI_Finalize();
      fail<CommunicationError>("MPI_Init_thread: this MPI cannot be used beside threads");
    }
  }
  ~MpiSession() { MPI_Finalize(); }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
};

// MPI's own waiting keeps a core busy, which the computation needs.
void wait(std::span<MPI_Request> requests) {
  int done = 0;
  for (Patience patience;; patience.pause()) {
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (done != 0) return;
  }
}

MPI_Datatype mpi_type(DType dtype) {
  if (dtype == DType::f32) return MPI_FLOAT;
  if (dtype == DType::f64) return MPI_DOUBLE;
  fail<CommunicationError>("sums of MPI: need float32 or float64, found {}", name_of(dtype));
}

// Where each rank's part of some numbers begins, and how many are in it.
struct Division {
  Division(int64_t count, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      begins.push_back(static_cast<int>(part_begin(count, rank, ranks)));
      counts.push_back(static_cast<int>(part_begin(count, rank + 1, ranks)) - begins.back());
    }
  }
  std::vector<int> begins, counts;
};

class MpiTransport final : public Transport, public NetworkCollectives {
 public:
  MpiTransport() {
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    do {  // at least one message each way, even an empty one
      const std::span<const std::byte> out_piece = out.first(std::min(out.size(), kLargest));
      const std::span<std::byte> in_piece = in.first(std::min(in.size(), kLargest));
      out = out.subspan(out_piece.size());
      in = in.subspan(in_piece.size());
      exchange_piece(to, out_piece, from, in_piece);
      if (out.empty()) to = kNobody;
      if (in.empty()) from = kNobody;
    } while (!out.empty() || !in.empty());
  }

  NetworkCollectives* collectives() override { return this; }

  // Not in place: Open MPI would then send all numbers along a tree, however many they are.
  void all_reduce(const Numbers& x, std::vector<std::byte>& scratch) override {
    const MPI_Datatype type = mpi_type(x.dtype);
    const std::span<std::byte> sums = x.bytes();
    scratch.resize(std::max(scratch.size(), sums.size()));
    std::ranges::copy(sums, scratch.begin());
    MPI_Request request = MPI_REQUEST_NULL;
    check(
        MPI_Iallreduce(scratch.data(), sums.data(), static_cast<int>(x.count), type, MPI_SUM, MPI_COMM_WORLD, &request),
        "MPI_Iallreduce");
    wait({&request, 1});
  }

  void reduce_scatter(const Numbers& x, std::vector<std::byte>& scratch) override {
    const MPI_Datatype type = mpi_type(x.dtype);
    const Division division(x.count, size_);
    const std::span<std::byte> mine = part_of(x, rank_, size_).bytes();
    scratch.resize(std::max({scratch.size(), mine.size(), size_t{1}}));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ireduce_scatter(x.data, scratch.data(), division.counts.data(), type, MPI_SUM, MPI_COMM_WORLD, &request),
          "MPI_Ireduce_scatter");
    wait({&request, 1});
    std::ranges::copy(std::span(scratch).first(mine.size()), mine.begin());
  }

  void all_gather(const Numbers& x) override {
    const MPI_Datatype type = mpi_type(x.dtype);
    const Division division(x.count, size_);
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, x.data, division.counts.data(), division.begins.data(), type,
                          MPI_COMM_WORLD, &request),
          "MPI_Iallgatherv");
    wait({&request, 1});
  }

  void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    ::_exit(status);  // in case MPI_Abort() returns
  }

 private:
  static constexpr size_t kLargest = size_t{1} << 30;  // MPI counts with int

  static void exchange_piece(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (from != kNobody)
      check(MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]),
            "MPI_Irecv");
    if (to != kNobody)
      check(MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]),
            "MPI_Isend");
    wait(requests);
  }

  MpiSession session_;
  int rank_ = 0, size_ = 1;
};

}  // namespace

bool has_mpi() {
  return true;
}

std::unique_ptr<Transport> make_mpi_transport() {
  return std::make_unique<MpiTransport>();
}

}  // namespace attune
