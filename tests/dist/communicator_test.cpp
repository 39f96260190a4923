#include "attune/dist/communicator.h"
#include "attune/base/fail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include <mutex>
#include <numeric>

#include "attune/dist/launch.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"
#include "tests/support/random_values.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::vector<float> numbers_of(int rank, int64_t count) {
  return random_values(17, static_cast<uint64_t>(rank), count);
}

std::vector<float> sum_of(int ranks, int64_t count) {
  std::vector<double> sum(static_cast<size_t>(count));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<float> x = numbers_of(rank, count);
    for (size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
  }
  return {sum.begin(), sum.end()};
}

class Collectives : public ::testing::TestWithParam<std::tuple<int, int64_t>> {
 protected:
  const int ranks_ = std::get<0>(GetParam());
  const int64_t count_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(RanksAndCounts, Collectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 7, 8),
                                            ::testing::Values<int64_t>(0, 1, 3, 64, 1001)));

TEST_P(Collectives, EveryRankGetsTheSameSum) {
  std::vector<std::vector<float>> results(static_cast<size_t>(ranks_));
  run_in_process(ranks_, [&](Communicator& communicator) {
    std::vector<float> x = numbers_of(communicator.rank(), count_);
    communicator.all_reduce(std::span(x));
    results[static_cast<size_t>(communicator.rank())] = x;
  });
  const std::vector<float> expected = sum_of(ranks_, count_);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(results[0][i], expected[i], 1e-5);
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(Collectives, APartOfTheSumIsThatOfTheWhole) {
  run_in_process(ranks_, [&](Communicator& communicator) {
    std::vector<float> whole = numbers_of(communicator.rank(), count_), part = whole;
    communicator.all_reduce(std::span(whole));
    communicator.reduce_scatter(std::span(part));
    const int64_t begin = part_begin(count_, communicator.rank(), ranks_);
    const int64_t end = part_begin(count_, communicator.rank() + 1, ranks_);
    for (int64_t i = begin; i < end; ++i) EXPECT_EQ(part[static_cast<size_t>(i)], whole[static_cast<size_t>(i)]);
    for (int64_t i = 0; i < count_; ++i)
      if (i < begin || i >= end) part[static_cast<size_t>(i)] = -1;
    communicator.all_gather(std::span(part));
    EXPECT_EQ(part, whole);
  });
}

TEST_P(Collectives, SendTheirShareAndNoMore) {
  run_in_process(ranks_, [&](Communicator& communicator) {
    std::vector<double> x(static_cast<size_t>(count_), 1);
    communicator.all_reduce(std::span(x));
    // 2 (N - 1) / N of the numbers, but for parts that differ by one.
    const double share = 2.0 * (ranks_ - 1) / ranks_ * static_cast<double>(count_);
    EXPECT_NEAR(static_cast<double>(communicator.bytes_sent()) / 8, share, 2 * ranks_);
  });
}

TEST_P(Collectives, BroadcastAndGather) {
  run_in_process(ranks_, [&](Communicator& communicator) {
    const std::string text(static_cast<size_t>(count_), static_cast<char>('a' + communicator.rank()));
    for (int root = 0; root < ranks_; ++root) {
      EXPECT_EQ(communicator.broadcast(text, root),
                std::string(static_cast<size_t>(count_), static_cast<char>('a' + root)));
      const std::vector<int> mine(static_cast<size_t>(communicator.rank()), communicator.rank());
      const auto all = communicator.gather(std::as_bytes(std::span(mine)), root);
      ASSERT_EQ(all.size(), communicator.rank() == root ? static_cast<size_t>(ranks_) : 0u);
      for (size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r].size(), r * sizeof(int));
    }
    const std::vector<int64_t> ranks = communicator.all_gather_values<int64_t>(communicator.rank() * 10);
    for (int r = 0; r < ranks_; ++r) EXPECT_EQ(ranks[static_cast<size_t>(r)], r * 10);
    communicator.barrier();
  });
}

TEST(Communicator, OperationsOverlapAndEndInOrder) {
  run_in_process(3, [&](Communicator& communicator) {
    std::vector<std::vector<float>> buffers;
    std::vector<Pending> pending;
    for (int64_t i = 0; i < 20; ++i) buffers.push_back(numbers_of(communicator.rank(), 100 + i));
    for (auto& buffer : buffers) pending.push_back(communicator.start_all_reduce(std::span(buffer)));
    for (auto& p : pending) EXPECT_GE(p.wait(), 0);
    for (int64_t i = 0; i < 20; ++i) EXPECT_NEAR(buffers[static_cast<size_t>(i)][5], sum_of(3, 100 + i)[5], 1e-5);
  });
}

TEST(Communicator, ACallHasItsPlaceAmongTheOperations) {
  run_in_process(2, [&](Communicator& communicator) {
    std::vector<float> x(4), seen;
    if (communicator.rank() == 1)
      communicator.start_call([&] {
        for (float& number : x) number = 5;
      });
    communicator.start_call([&] { x[0] += 1; });
    communicator.start_all_reduce(std::span(x));
    communicator.start_call([&] { seen = x; }).wait();
    EXPECT_EQ(seen, (std::vector<float>{7, 5, 5, 5}));
  });
}

TEST(Communicator, WhatACallThrowsEndsWhatComesLater) {
  const std::string message = message_of<NumericError>([&] {
    run_in_process(2, [&](Communicator& communicator) {
      std::vector<float> x(4);
      if (communicator.rank() == 0) {
        EXPECT_THROW(communicator.all_reduce(std::span(x)), CommunicationError);
      } else {
        communicator.start_call([] { fail<NumericError>("rank 1 has lost its numbers"); });
        communicator.all_reduce(std::span(x));
      }
    });
  });
  EXPECT_EQ(message, "rank 1 has lost its numbers");
}

TEST(Communicator, TheFailureOfOneRankEndsTheOthers) {
  int failed = 0;
  std::mutex mutex;
  const std::string message = message_of<NumericError>([&] {
    run_in_process(4, [&](Communicator& communicator) {
      if (communicator.rank() == 2) fail<NumericError>("rank 2 has had enough");
      std::vector<float> x(10);
      Pending first = communicator.start_all_reduce(std::span(x));
      Pending second = communicator.start_all_reduce(std::span(x));
      EXPECT_THROW(first.wait(), CommunicationError);
      EXPECT_THROW(second.wait(), CommunicationError);
      const std::lock_guard lock(mutex);
      ++failed;
    });
  });
  EXPECT_EQ(message, "rank 2 has had enough");
  EXPECT_EQ(failed, 3);
}

TEST(Communicator, SumsOnlyWhatCanBeSummed) {
  EXPECT_THAT(message_of<CommunicationError>([&] {
                run_in_process(2, [&](Communicator& communicator) {
                  communicator.all_reduce(Tensor::zeros({4}, {.dtype = DType::i32}));
                });
              }),
              HasSubstr("needs float32 or float64, found int32"));
}

TEST(Communicator, APlainProcessIsAlone) {
  ASSERT_FALSE(started_by_mpi());
  const auto communicator = make_communicator();
  EXPECT_EQ(communicator->size(), 1);
  EXPECT_EQ(communicator->broadcast("text"), "text");
  EXPECT_EQ(communicator->all_gather_values(5), std::vector<int>{5});
  bool called = false;
  communicator->start_call([&] { called = true; }).wait();
  EXPECT_TRUE(called);
}

// Batch systems set these for single processes too.
TEST(Communicator, OneProcessOfALauncherIsAlone) {
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    ::setenv(name, "1", 1);
    ::setenv("PMI_RANK", "0", 1);
    EXPECT_FALSE(started_by_mpi()) << name;
    ::setenv(name, "2", 1);
    EXPECT_TRUE(started_by_mpi()) << name;
    ::unsetenv(name);
    ::unsetenv("PMI_RANK");
  }
}

TEST(PartBegin, CoversEverythingOnce) {
  for (const int64_t count : {0, 1, 5, 64, 1000003})
    for (int64_t ranks = 1; ranks < 10; ++ranks) {
      EXPECT_EQ(part_begin(count, 0, ranks), 0);
      EXPECT_EQ(part_begin(count, ranks, ranks), count);
      for (int64_t r = 0; r < ranks; ++r) {
        const int64_t size = part_begin(count, r + 1, ranks) - part_begin(count, r, ranks);
        EXPECT_TRUE(size == count / ranks || size == count / ranks + 1);
      }
    }
}

}  // namespace
}  // namespace attune
