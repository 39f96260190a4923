// Groups of GPUs: a stream of its own for what they exchange, in order with what they compute.

#include <utility>

#include "attune/base/fail.h"
#include "attune/base/patience.h"
#include "attune/kernels/cuda/runtime/collectives.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/cuda_device.h"

namespace attune {
namespace cuda {
namespace {

// What the group and its operations share. The member ends its operations before the stream goes.
struct Membership {
  Membership(Cuda device_, const CudaGroupId& id, int rank_, int size_, const std::function<void()>& meet)
      : device(device_), rank(rank_), size(size_), stream(device) {
    meet();
    member = join(device, id, rank, size);
  }

  Cuda device;
  int rank, size;
  SideStream stream;
  std::unique_ptr<Member> member;
};

class StartedOperation final : public CudaGroup::Operation {
 public:
  StartedOperation(std::shared_ptr<Membership> membership, const Tensor& x, Collective::Kind kind)
      : membership_(std::move(membership)),
        x_(x.detach()),
        kind_(kind),
        begin_(membership_->device),
        end_(membership_->device) {}
  // The memory of x may be used for something else from here on.
  ~StartedOperation() override {
    if (running_) membership_->member->abort();
  }
  StartedOperation(const StartedOperation&) = delete;
  StartedOperation& operator=(const StartedOperation&) = delete;

  void start(const Collective& collective) {
    const SideStream& stream = membership_->stream;
    stream.follow_device();
    begin_.record(stream);
    membership_->member->start(collective, stream);
    running_ = true;
    end_.record(stream);
  }

  double wait() override {
    for (Patience patience; !end_.happened(); patience.pause()) membership_->member->check(kind_);
    running_ = false;
    return end_.seconds_since(begin_);
  }

 private:
  std::shared_ptr<Membership> membership_;
  Tensor x_;  // kept
  Collective::Kind kind_;
  Event begin_, end_;
  bool running_ = false;
};

class Group final : public CudaGroup {
 public:
  Group(Cuda device, const CudaGroupId& id, int rank, int size, const std::function<void()>& meet)
      : membership_(std::make_shared<Membership>(device, id, rank, size, meet)) {}

  std::shared_ptr<Operation> all_reduce(const Tensor& x) override {
    return start(
        x,
        {.kind = Collective::Kind::all_reduce, .from = x.raw(), .to = x.raw(), .count = x.numel(), .type = x.dtype()});
  }
  std::shared_ptr<Operation> reduce_scatter(const Tensor& x) override {
    constexpr auto kKind = Collective::Kind::reduce_scatter;
    return start(x, {.kind = kKind, .from = x.raw(), .to = part(kKind, x), .count = part_size(x), .type = x.dtype()});
  }
  std::shared_ptr<Operation> all_gather(const Tensor& x) override {
    constexpr auto kKind = Collective::Kind::all_gather;
    return start(x, {.kind = kKind, .from = part(kKind, x), .to = x.raw(), .count = part_size(x), .type = x.dtype()});
  }
  std::shared_ptr<Operation> broadcast(const Tensor& x, int root) override {
    return start(x, {.kind = Collective::Kind::broadcast,
                     .from = x.raw(),
                     .to = x.raw(),
                     .count = static_cast<int64_t>(x.bytes()),
                     .type = DType::u8,
                     .root = root});
  }
  void synchronize() override { cuda::synchronize(membership_->device); }

 private:
  std::shared_ptr<Operation> start(const Tensor& x, const Collective& collective) {
    if (x.device() != Device(membership_->device))
      fail<CommunicationError>("{}: needs a tensor on {}, found one on {}", name_of(collective.kind),
                               Device(membership_->device).text(), x.device().text());
    if (collective.kind != Collective::Kind::broadcast && x.dtype() != DType::f32 && x.dtype() != DType::f64)
      fail<CommunicationError>("{}: needs float32 or float64, found {}", name_of(collective.kind), name_of(x.dtype()));
    const CudaScope scope(membership_->device);
    const auto operation = std::make_shared<StartedOperation>(membership_, x, collective.kind);
    operation->start(collective);
    return operation;
  }

  int64_t part_size(const Tensor& x) const { return x.numel() / membership_->size; }

  // This member's part of x.
  void* part(Collective::Kind kind, const Tensor& x) const {
    if (x.numel() % membership_->size != 0)
      fail<CommunicationError>("{}: needs a multiple of {} numbers, one part for each GPU, found {}", name_of(kind),
                               membership_->size, x.numel());
    return static_cast<std::byte*>(x.raw()) +
           static_cast<size_t>(part_size(x) * membership_->rank) * size_of(x.dtype());
  }

  std::shared_ptr<Membership> membership_;
};

}  // namespace

const char* name_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return "all_reduce";
    case Collective::Kind::reduce_scatter:
      return "reduce_scatter";
    case Collective::Kind::all_gather:
      return "all_gather";
    case Collective::Kind::broadcast:
      break;
  }
  return "broadcast";
}

}  // namespace cuda

CudaIdentity identity_of(Cuda device) {
  cuda::check_device(device);
  return cuda::identity_of(device);
}

CudaLibrary cuda_group_library() {
  return cuda::collectives_library();
}

CudaGroupId make_cuda_group_id() {
  return cuda::make_group_id();
}

std::unique_ptr<CudaGroup> join_cuda_group(Cuda device, const CudaGroupId& id, int rank, int size,
                                           const std::function<void()>& meet) {
  cuda::check_device(device);
  const CudaScope scope(device);
  return std::make_unique<cuda::Group>(device, id, rank, size, meet);
}

}  // namespace attune
