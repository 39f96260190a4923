// When the sums of a network's own library are taken. Those of MPI itself: tests/integration/mpi_test.cpp.

#include "attune/dist/network_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "attune/dist/point_to_point_communicator.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"
#include "tests/support/recording_transport.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NetworkAlgorithm : public ::testing::Test {
 protected:
  std::vector<std::string> calls_;
  PointToPointCommunicator communicator_{[this] { return std::make_unique<RecordingTransport>(calls_); }};
  std::vector<float> x_ = std::vector<float>(5, 1);
};

TEST_F(NetworkAlgorithm, IsTheLibrarysWhereItIsAskedFor) {
  EXPECT_TRUE(communicator_.has_network_algorithm());
  communicator_.all_reduce(std::span(x_), Algorithm::of_network);
  communicator_.reduce_scatter(std::span(x_), Algorithm::of_network);
  communicator_.all_gather(std::span(x_), Algorithm::of_network);
  EXPECT_THAT(calls_, ElementsAre("all_reduce", "reduce_scatter", "all_gather"));
}

TEST_F(NetworkAlgorithm, IsNotTakenUnasked) {
  communicator_.all_reduce(std::span(x_));
  communicator_.reduce_scatter(std::span(x_));
  communicator_.all_gather(std::span(x_));
  EXPECT_THAT(calls_, ElementsAre("exchange", "exchange", "exchange", "exchange"));
}

TEST_F(NetworkAlgorithm, CountsBytesAsTheFixedOneSendsThem) {
  std::vector<float> x(6);
  for (const Algorithm algorithm : {Algorithm::fixed, Algorithm::of_network}) {
    const int64_t before = communicator_.bytes_sent();
    communicator_.all_reduce(std::span(x), algorithm);
    communicator_.reduce_scatter(std::span(x), algorithm);
    communicator_.all_gather(std::span(x), algorithm);
    EXPECT_EQ(communicator_.bytes_sent() - before, 4 * 3 * 4);  // half of the numbers, four times
  }
}

// The library counts with int.
TEST_F(NetworkAlgorithm, IsNotAskedForMoreNumbersThanItCanCount) {
  const Numbers many(static_cast<std::byte*>(static_cast<void*>(x_.data())), NetworkCollectives::kMostNumbers + 1,
                     DType::f32);  // nobody touches them
  communicator_.all_gather(many, Algorithm::of_network);
  EXPECT_THAT(calls_, ElementsAre("exchange"));
}

TEST_F(NetworkAlgorithm, IsNotAskedForNothing) {
  communicator_.all_reduce(std::span<float>(), Algorithm::of_network);
  EXPECT_THAT(calls_, ElementsAre("exchange", "exchange"));
}

TEST(NetworkCollectives, AFailureEndsWhatComesLaterToo) {
  std::vector<std::string> calls;
  PointToPointCommunicator communicator([&] { return std::make_unique<RecordingTransport>(calls, true); });
  std::vector<float> x(5);
  Pending first = communicator.start_all_reduce(std::span(x), Algorithm::of_network);
  Pending second = communicator.start_all_gather(std::span(x), Algorithm::fixed);
  EXPECT_EQ(message_of<CommunicationError>([&] { first.wait(); }), "the library has had enough");
  EXPECT_EQ(message_of<CommunicationError>([&] { second.wait(); }), "the library has had enough");
  EXPECT_THAT(calls, IsEmpty());
}

// Threads, TCP and a single process have no library.
TEST(NetworkCollectives, WithoutALibraryTheOrderIsFixed) {
  EXPECT_FALSE(LocalCommunicator().has_network_algorithm());
  run_in_process(3, [](Communicator& communicator) {
    EXPECT_FALSE(communicator.has_network_algorithm());
    std::vector<float> asked;
    for (int i = 0; i < 100; ++i) asked.push_back(0.1F * static_cast<float>((communicator.rank() + 1) * (i + 1)));
    std::vector<float> fixed = asked;
    communicator.all_reduce(std::span(asked), Algorithm::of_network);
    communicator.all_reduce(std::span(fixed), Algorithm::fixed);
    EXPECT_EQ(asked, fixed);
  });
}

}  // namespace
}  // namespace attune
