// Tensors of devices reach the other ranks: through the host on any device, and from GPU to GPU, which is emulated
// where there are none.

#include "attune/dist/tensor_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/dist/cuda_exchange.h"
#include "attune/dist/staged_exchange.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"
#include "tests/support/random_values.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::vector<float> values_of_rank(int rank, int64_t count) {
  return random_values(23, static_cast<uint64_t>(rank), count);
}

// The sum as the communicator forms it.
std::vector<float> summed(Communicator& communicator, int64_t count) {
  std::vector<float> sum = values_of_rank(communicator.rank(), count);
  communicator.all_reduce(std::span(sum));
  return sum;
}

double wait_for(TensorExchange& exchange, Pending pending) {
  exchange.all_started();
  return pending.wait();
}

// What the ranks have after each operation on tensors of `count` numbers is within `tolerance` of the communicator's.
void expect_sums(Communicator& communicator, TensorExchange& exchange, const Device& device, int64_t count,
                 double tolerance) {
  const int rank = communicator.rank(), ranks = communicator.size();
  const std::vector<float> expected = summed(communicator, count), mine = values_of_rank(rank, count);
  const auto near = testing::Pointwise(testing::FloatNear(static_cast<float>(tolerance)), expected);
  const Tensor whole = Tensor::from({count}, mine, device);
  EXPECT_GE(wait_for(exchange, exchange.start_all_reduce(whole)), 0);
  EXPECT_THAT(host_values<float>(whole), near);

  const Tensor part = Tensor::from({count}, mine, device);
  wait_for(exchange, exchange.start_reduce_scatter(part));
  const int64_t begin = part_begin(count, rank, ranks), end = part_begin(count, rank + 1, ranks);
  const std::vector<float> found = host_values<float>(part);
  for (int64_t i = begin; i < end; ++i)
    EXPECT_NEAR(found[static_cast<size_t>(i)], expected[static_cast<size_t>(i)], tolerance) << i;
  part.rows(0, begin).fill(NAN);
  part.rows(end, count).fill(NAN);
  wait_for(exchange, exchange.start_all_gather(part));
  EXPECT_THAT(host_values<float>(part), near);
}

class StagedExchangeOfRanks : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, StagedExchangeOfRanks, ::testing::Values(1, 2, 3, 4));

TEST_P(StagedExchangeOfRanks, SumsAreThoseOfTheCommunicatorToTheBit) {
  std::vector<Device> devices = devices_under_test();
  devices.emplace_back(Cpu{});
  for (const Device& device : devices)
    run_in_process(GetParam(), [&](Communicator& communicator) {
      StagedExchange exchange(communicator);
      for (const int64_t count : {1, 5, 64, 1001}) expect_sums(communicator, exchange, device, count, 0);
      EXPECT_EQ(exchange.unit(), 1);
    });
}

TEST_P(StagedExchangeOfRanks, OperationsOverlap) {
  for (const Device& device : devices_under_test())
    run_in_process(GetParam(), [&](Communicator& communicator) {
      StagedExchange exchange(communicator);
      for (int update = 0; update < 3; ++update) {  // the memory on the host is used again
        std::vector<Tensor> tensors;
        std::vector<Pending> pending;
        for (const int64_t count : {7, 70, 700, 70, 3}) {
          tensors.push_back(Tensor::from({count}, values_of_rank(communicator.rank(), count), device));
          tensors.back().rows(0, 1).fill(update);
          pending.push_back(exchange.start_all_reduce(tensors.back()));
        }
        exchange.all_started();
        for (Pending& p : pending) p.wait();
        for (const Tensor& x : tensors) {
          std::vector<float> expected = summed(communicator, x.numel());
          expected[0] = static_cast<float>(update * communicator.size());
          EXPECT_EQ(host_values<float>(x), expected);
        }
      }
    });
}

// Its copies and the first sum may be on their way.
TEST_P(StagedExchangeOfRanks, ARankThatFailsEndsTheOthers) {
  if (GetParam() == 1) return;
  for (const Device& device : devices_under_test())
    EXPECT_EQ(message_of<NumericError>([&] {
                run_in_process(GetParam(), [&](Communicator& communicator) {
                  StagedExchange exchange(communicator);
                  const Tensor x = Tensor::full({9}, 1, {.device = device}), y = x.clone();
                  const Pending first = exchange.start_all_reduce(x);
                  if (communicator.rank() == 1) fail<NumericError>("rank 1 has had enough");
                  Pending second = exchange.start_all_reduce(y);
                  exchange.all_started();
                  EXPECT_THROW(second.wait(), CommunicationError);
                });
              }),
              "rank 1 has had enough");
}

TEST_P(StagedExchangeOfRanks, EveryRankGetsWhatTheRootHas) {
  for (const Device& device : devices_under_test())
    run_in_process(GetParam(), [&](Communicator& communicator) {
      StagedExchange exchange(communicator);
      const int root = communicator.size() - 1;
      const Tensor x = Tensor::full({3, 2}, communicator.rank(), {.dtype = DType::i32, .device = device});
      exchange.broadcast(x, root);
      EXPECT_EQ(host_values<int32_t>(x), std::vector<int32_t>(6, root));
    });
}

TEST(TensorExchange, OfTheHostNeedsNoWord) {
  run_in_process(2, [](Communicator& communicator) {
    EXPECT_EQ(make_tensor_exchange(communicator, Cpu{})->text(), "");
    EXPECT_EQ(make_tensor_exchange(communicator, Plain{})->text(), "");
  });
}

// What each of three ranks is told, the same at all.
std::string why_not(const std::vector<int>& gpus, const std::vector<CudaLibrary>& libraries) {
  std::vector<std::string> told(3);
  run_in_process(3, [&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    CudaIdentity gpu{};
    gpu[5] = static_cast<std::byte>(gpus[rank]);
    told[rank] = why_not_from_gpu_to_gpu(communicator, gpu, libraries[rank]);
  });
  EXPECT_EQ(told[1], told[0]);
  EXPECT_EQ(told[2], told[0]);
  return told[0];
}

TEST(TensorExchange, SaysWhyItGoesThroughTheHost) {
  const CudaLibrary old = {.name = "NCCL 2.18.3"}, current = {.name = "NCCL 2.28.9"};
  const CudaLibrary none = {.missing = "libnccl.so.2: cannot be loaded: no such file"};
  EXPECT_EQ(why_not({1, 2, 3}, {current, current, current}), "");
  EXPECT_EQ(why_not({1, 2, 1}, {current, current, current}), "ranks 0 and 2 share a GPU");
  EXPECT_EQ(why_not({1, 2, 3}, {current, none, current}), "rank 1: libnccl.so.2: cannot be loaded: no such file");
  EXPECT_EQ(why_not({1, 2, 3}, {current, current, old}), "rank 0 has NCCL 2.28.9, rank 2 has NCCL 2.18.3");
}

TEST(TensorExchange, RanksOnOneGpuGoThroughTheHost) {
  if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
  if (usable_gpus() < 1) GTEST_SKIP() << "no GPU";
  run_in_process(2, [](Communicator& communicator) {
    const auto exchange = make_tensor_exchange(communicator, Cuda{0});
    EXPECT_EQ(exchange->text(), "gradients go through the memory of the host: ranks 0 and 1 share a GPU");
    expect_sums(communicator, *exchange, Cuda{0}, 37, 0);
  });
}

class GpuExchange : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
    if (usable_gpus() < GetParam()) GTEST_SKIP() << "needs " << GetParam() << " GPUs, there are " << usable_gpus();
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuExchange, ::testing::Values(2, 3, 4));

// Two numbers have one sum, whatever their order.
TEST_P(GpuExchange, SumsAreThoseOfTheCommunicator) {
  run_in_process(GetParam(), [](Communicator& communicator) {
    const Cuda device{communicator.rank()};
    const auto exchange = make_tensor_exchange(communicator, device);
    EXPECT_THAT(exchange->text(), HasSubstr("gradients go from GPU to GPU, by NCCL"));
    EXPECT_EQ(exchange->unit(), 4 * communicator.size());
    for (const int64_t units : {1, 3, 50})
      expect_sums(communicator, *exchange, device, units * exchange->unit(), communicator.size() == 2 ? 0 : 1e-5);
  });
}

TEST_P(GpuExchange, OperationsOverlapAndAreCounted) {
  run_in_process(GetParam(), [](Communicator& communicator) {
    const Cuda device{communicator.rank()};
    const auto exchange = make_tensor_exchange(communicator, device);
    std::vector<Tensor> tensors;
    std::vector<Pending> pending;
    const int64_t count = 10 * exchange->unit();
    for (int i = 0; i < 3; ++i) {
      tensors.push_back(Tensor::from({count}, values_of_rank(communicator.rank(), count), device));
      pending.push_back(exchange->start_all_reduce(tensors.back()));
    }
    exchange->all_started();
    for (Pending& p : pending) p.wait();
    const auto near = testing::Pointwise(testing::FloatNear(1e-5F), summed(communicator, count));
    for (const Tensor& x : tensors) EXPECT_THAT(host_values<float>(x), near);
    const int64_t ranks = communicator.size();
    EXPECT_EQ(exchange->bytes_sent(), 3 * 2 * count * 4 * (ranks - 1) / ranks);
  });
}

TEST_P(GpuExchange, EveryRankGetsWhatTheRootHas) {
  run_in_process(GetParam(), [](Communicator& communicator) {
    const Cuda device{communicator.rank()};
    const auto exchange = make_tensor_exchange(communicator, device);
    const Tensor x = Tensor::full({3, 1}, communicator.rank(), {.dtype = DType::i64, .device = device});
    exchange->broadcast(x, 1);
    EXPECT_EQ(host_values<int64_t>(x), std::vector<int64_t>(3, 1));
  });
}

// Its GPU would wait forever; the communicator says it.
TEST_P(GpuExchange, ARankThatFailsEndsTheOthers) {
  EXPECT_EQ(message_of<NumericError>([&] {
              run_in_process(GetParam(), [](Communicator& communicator) {
                const Cuda device{communicator.rank()};
                const auto exchange = make_tensor_exchange(communicator, device);
                communicator.barrier();
                if (communicator.rank() == 1) fail<NumericError>("rank 1 has had enough");
                EXPECT_THROW(
                    {
                      const Tensor x = Tensor::zeros({exchange->unit()}, {.device = device});
                      Pending pending = exchange->start_all_reduce(x);
                      exchange->all_started();
                      pending.wait();
                    },
                    CommunicationError);
              });
            }),
            "rank 1 has had enough");
}

}  // namespace
}  // namespace attune
