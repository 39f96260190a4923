// The emulation of groups of GPUs does what they promise, and finds what must not be done with them.

#include "attune/tensor/cuda_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "attune/kernels/cuda/runtime/collectives.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"

namespace attune::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Calls body(rank, its GPU, its group) for each member on a thread of its own.
template <class Body>
void on_members(int members, const Body& body) {
  const CudaGroupId id = make_cuda_group_id();
  run_in_process(members, [&](Communicator& communicator) {
    const Cuda device{communicator.rank()};
    const auto group = join_cuda_group(device, id, communicator.rank(), members);
    body(communicator, device, *group);
    communicator.barrier();  // nobody leaves while others are at work
  });
}

Tensor on(Cuda device, const std::vector<float>& values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, values, device);
}

MATCHER(IsNan, "") {
  return std::isnan(arg);
}

TEST(CudaGroup, AddsUpInTheOrderOfTheMembers) {
  on_members(3, [](Communicator&, Cuda device, CudaGroup& group) {
    const float mine[] = {1e8F, -1e8F, 1.0F};
    const Tensor x = on(device, {mine[device.index], static_cast<float>(device.index)});
    EXPECT_GE(group.all_reduce(x)->wait(), 0);
    EXPECT_THAT(host_values<float>(x), ElementsAre(1, 3));  // another order gives 0: 1e8 + 1 is 1e8
  });
}

TEST(CudaGroup, AddsDoublesAndLeavesNothingToTheOthers) {
  on_members(2, [](Communicator&, Cuda device, CudaGroup& group) {
    const Tensor x = Tensor::full({4}, 0.1 * (device.index + 1), {.dtype = DType::f64, .device = device});
    group.reduce_scatter(x)->wait();
    const std::vector<double> found = host_values<double>(x);
    EXPECT_EQ(found[static_cast<size_t>(2 * device.index)], 0.1 + 0.2);
    EXPECT_EQ(found[static_cast<size_t>(2 * device.index + 1)], 0.1 + 0.2);
  });
}

TEST(CudaGroup, GathersPartsAndBroadcasts) {
  on_members(3, [](Communicator&, Cuda device, CudaGroup& group) {
    const auto rank = static_cast<float>(device.index);
    const Tensor x = on(device, std::vector<float>(6, 10 + rank));
    group.all_gather(x)->wait();
    EXPECT_THAT(host_values<float>(x), ElementsAre(10, 10, 11, 11, 12, 12));
    const Tensor y = Tensor::full({2, 2}, rank, {.dtype = DType::i32, .device = device});
    group.broadcast(y, 2)->wait();
    EXPECT_THAT(host_values<int32_t>(y), Each(2));
  });
}

TEST(CudaGroup, NothingIsThereBeforeItIsWaitedFor) {
  on_members(2, [](Communicator& communicator, Cuda device, CudaGroup& group) {
    const Tensor x = on(device, {1, 2}), y = on(device, {3, 4});
    const auto first = group.all_reduce(x), second = group.all_reduce(y);
    communicator.barrier();
    EXPECT_THAT(host_values<float>(x), Each(IsNan()));
    EXPECT_THAT(host_values<float>(y), Each(IsNan()));
    first->wait();
    EXPECT_THAT(host_values<float>(x), ElementsAre(2, 4));
    EXPECT_THAT(host_values<float>(y), Each(IsNan()));
    second->wait();
    EXPECT_THAT(host_values<float>(y), ElementsAre(6, 8));
  });
}

TEST(CudaGroup, AStreamThatDoesNotFollowTheDeviceIsFound) {
  const CudaGroupId id = make_group_id();
  const Cuda device{0};
  const auto member = join(device, id, 0, 1);
  const SideStream stream(device);
  stream.follow_device();
  const Tensor x = on(device, {1, 2});  // a copy that the stream knows nothing of
  const Collective sum = {.kind = Collective::Kind::all_reduce, .from = x.raw(), .to = x.raw(), .count = 2};
  EXPECT_EQ(message_of<CommunicationError>([&] { member->start(sum, stream); }),
            "all_reduce: its stream does not wait for what the device was given before");
  stream.follow_device();
  x.fill(5);  // a kernel
  EXPECT_THROW(member->start(sum, stream), CommunicationError);
  stream.follow_device();
  member->start(sum, stream);
}

TEST(CudaGroup, AnEventHappensAfterWhatTheStreamWasGivenBefore) {
  const SideStream stream(Cuda{0});
  const Event first(Cuda{0}), second(Cuda{0});
  EXPECT_FALSE(first.happened());
  first.record(stream);
  second.record(stream);
  EXPECT_TRUE(second.happened());
  EXPECT_TRUE(first.happened());
  EXPECT_GE(second.seconds_since(first), 0);
}

TEST(CudaGroup, AMemberThatLeavesIsFound) {
  const CudaGroupId id = make_cuda_group_id();
  run_in_process(2, [&](Communicator& communicator) {
    const Cuda device{communicator.rank()};
    auto group = join_cuda_group(device, id, communicator.rank(), 2);
    const Tensor x = on(device, {1});
    if (device.index == 1) {
      communicator.barrier();
      group.reset();
      return;
    }
    const auto operation = group->all_reduce(x);
    communicator.barrier();
    EXPECT_EQ(message_of<CommunicationError>([&] { operation->wait(); }),
              "all_reduce: the GPU of rank 1 has left the group");
  });
}

TEST(CudaGroup, WhoFailsBeforeTheMembersMeetDoesNotWaitForThem) {
  EXPECT_EQ(message_of<CommunicationError>([] {
              join_cuda_group(Cuda{0}, make_cuda_group_id(), 0, 2, [] { throw CommunicationError("rank 1 is gone"); });
            }),
            "rank 1 is gone");
}

// Its memory may be gone: the operation must not write there any more.
TEST(CudaGroup, AnOperationThatNobodyWaitsForEndsAll) {
  on_members(2, [](Communicator& communicator, Cuda device, CudaGroup& group) {
    if (device.index == 0) group.all_reduce(on(device, {1}));
    communicator.barrier();
    EXPECT_EQ(message_of<CommunicationError>([&] {
                group.all_gather(on(device, {1, 2}))->wait();
              }),
              "all_gather: the GPU of rank 0 has left the group");
    communicator.barrier();
  });
}

TEST(CudaGroup, MembersCallTheSameOperations) {
  on_members(2, [](Communicator& communicator, Cuda device, CudaGroup& group) {
    if (device.index == 1) communicator.barrier();
    const Tensor x = on(device, std::vector<float>(device.index == 0 ? 2 : 4, 1));
    if (device.index == 0) {
      const auto first = group.all_reduce(x);
      communicator.barrier();
      communicator.barrier();
    } else {
      EXPECT_EQ(message_of<CommunicationError>([&] { group.all_reduce(x); }),
                "all_reduce: 4 numbers at rank 1, while another rank is at all_reduce of 2");
      communicator.barrier();
    }
  });
}

TEST(CudaGroup, RefusesWhatCannotBeSummedOrDivided) {
  on_members(2, [](Communicator&, Cuda device, CudaGroup& group) {
    EXPECT_EQ(message_of<CommunicationError>([&] {
                group.reduce_scatter(on(device, {1, 2, 3}));
              }),
              "reduce_scatter: needs a multiple of 2 numbers, one part for each GPU, found 3");
    EXPECT_EQ(message_of<CommunicationError>(
                  [&] { group.all_reduce(Tensor::zeros({2}, {.dtype = DType::i32, .device = device})); }),
              "all_reduce: needs float32 or float64, found int32");
    EXPECT_THAT(message_of<CommunicationError>([&] { group.all_gather(Tensor::zeros({2})); }),
                HasSubstr("all_gather: needs a tensor on cuda:"));
  });
}

TEST(CudaGroup, GpusHaveNamesOfTheirOwn) {
  EXPECT_NE(identity_of(Cuda{0}), identity_of(Cuda{1}));
  EXPECT_EQ(identity_of(Cuda{2}), identity_of(Cuda{2}));
  EXPECT_NE(make_cuda_group_id(), make_cuda_group_id());
  EXPECT_EQ(cuda_group_library().missing, "");
}

}  // namespace
}  // namespace attune::cuda
