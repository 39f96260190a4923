// NCCL. The library is loaded when several ranks have GPUs, so that the program starts without it.

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/collectives.h"
#include "attune/kernels/cuda/runtime/loaded_library.h"

namespace attune::cuda {
namespace {

// The functions of the library.
struct Library {
  decltype(&ncclGetVersion) version;
  decltype(&ncclGetUniqueId) make_id;
  decltype(&ncclCommInitRank) join;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclCommGetAsyncError) failed_since;
  decltype(&ncclGetErrorString) text_of;
  decltype(&ncclGetLastError) last_error;
};

struct FoundLibrary {
  Library functions;
  CudaLibrary about;
};

Library find_all(const LoadedLibrary& loaded) {
  Library library{};
  loaded.find(library.version, "ncclGetVersion");
  loaded.find(library.make_id, "ncclGetUniqueId");
  loaded.find(library.join, "ncclCommInitRank");
  loaded.find(library.abort, "ncclCommAbort");
  loaded.find(library.all_reduce, "ncclAllReduce");
  loaded.find(library.reduce_scatter, "ncclReduceScatter");
  loaded.find(library.all_gather, "ncclAllGather");
  loaded.find(library.broadcast, "ncclBroadcast");
  loaded.find(library.failed_since, "ncclCommGetAsyncError");
  loaded.find(library.text_of, "ncclGetErrorString");
  loaded.find(library.last_error, "ncclGetLastError");
  return library;
}

// NCCL reads both variables when it makes the first group; those that the user has set stay. NCCL_NVLS_ENABLE=0: sums
// in the switches of NVLink are not the same in every run, says NVIDIA (github.com/NVIDIA/nccl/issues/1497).
// NCCL_RUNTIME_CONNECT=0: GPUs are connected as they join. Otherwise the first operation of each kind connects them,
// and the host waits in it for a rank that may have failed.
FoundLibrary load() try {
  ::setenv("NCCL_NVLS_ENABLE", "0", 0);
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  FoundLibrary found{.functions = find_all({"libnccl.so.2", {ATTUNE_CUDA_LIBRARIES, ATTUNE_NCCL_LIBRARIES}}),
                     .about = {}};
  int version = 0;
  if (found.functions.version(&version) != ncclSuccess) found.about.missing = "libnccl.so.2: does not say its version";
  found.about.name = fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
  return found;
} catch (const DeviceError& error) {
  return {.functions = {}, .about = {.missing = error.what()}};
}

const FoundLibrary& found_library() {
  static const FoundLibrary library = load();
  return library;
}

const Library& library() {
  return found_library().functions;
}

void refuse_failure(const char* operation, ncclResult_t result) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const more = library().last_error(nullptr);
  fail<CommunicationError>("{}: NCCL: {}{}{}", operation, library().text_of(result),
                           more != nullptr && *more != '\0' ? ": " : "", more != nullptr ? more : "");
}

ncclDataType_t type_of(DType dtype) {
  if (dtype == DType::f64) return ncclFloat64;
  return dtype == DType::u8 ? ncclUint8 : ncclFloat32;
}

// A member leaves by ncclCommAbort(), which does not disturb operations that have ended. ncclCommDestroy() may wait for
// members that are about to wait for this one.
class NcclMember final : public Member {
 public:
  NcclMember(const ncclUniqueId& id, int rank, int size) {
    refuse_failure("joining the GPUs of the other ranks", library().join(&communicator_, size, id, rank));
  }
  ~NcclMember() override { abort(); }
  NcclMember(const NcclMember&) = delete;
  NcclMember& operator=(const NcclMember&) = delete;

  void start(const Collective& c, const SideStream& side) override {
    if (communicator_ == nullptr) fail<CommunicationError>("{}: an earlier operation was given up", name_of(c.kind));
    const auto stream = static_cast<cudaStream_t>(side.handle());
    const auto count = static_cast<size_t>(c.count);
    const ncclDataType_t type = type_of(c.type);
    ncclComm_t all = communicator_;
    ncclResult_t result = ncclSuccess;
    switch (c.kind) {
      case Collective::Kind::all_reduce:
        result = library().all_reduce(c.from, c.to, count, type, ncclSum, all, stream);
        break;
      case Collective::Kind::reduce_scatter:
        result = library().reduce_scatter(c.from, c.to, count, type, ncclSum, all, stream);
        break;
      case Collective::Kind::all_gather:
        result = library().all_gather(c.from, c.to, count, type, all, stream);
        break;
      case Collective::Kind::broadcast:
        result = library().broadcast(c.from, c.to, count, type, c.root, all, stream);
        break;
    }
    refuse_failure(name_of(c.kind), result);
  }

  void check(Collective::Kind kind) override {
    if (communicator_ == nullptr) fail<CommunicationError>("{}: an earlier operation was given up", name_of(kind));
    ncclResult_t since = ncclSuccess;
    refuse_failure(name_of(kind), library().failed_since(communicator_, &since));
    refuse_failure(name_of(kind), since);
  }

  // While an exception unwinds the stack, the other ranks do not know yet that this one has failed, and NCCL may wait
  // for them. So another thread calls NCCL, while this one goes on and tells the other ranks, which ends them. The
  // process may end before the other thread is done.
  void abort() noexcept override {
    ncclComm_t ended = std::exchange(communicator_, nullptr);
    if (ended == nullptr) return;
    const auto end = [ended, abort_it = library().abort] { abort_it(ended); };
    if (std::uncaught_exceptions() <= exceptions_) return end();
    try {
      std::thread(end).detach();
    } catch (const std::system_error&) {
      // No thread can be started: the operations end with the process.
    }
  }

 private:
  ncclComm_t communicator_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();  // on their way when this was made
};

}  // namespace

CudaLibrary collectives_library() {
  return found_library().about;
}

CudaGroupId make_group_id() {
  ncclUniqueId made;
  refuse_failure("making the id of a group of GPUs", library().make_id(&made));
  CudaGroupId id{};
  static_assert(sizeof(made) == sizeof(id));
  std::memcpy(id.data(), &made, sizeof(made));
  return id;
}

std::unique_ptr<Member> join(Cuda /*device*/, const CudaGroupId& id, int rank, int size) {
  ncclUniqueId made;
  std::memcpy(&made, id.data(), sizeof(made));
  return std::make_unique<NcclMember>(made, rank, size);
}

}  // namespace attune::cuda
