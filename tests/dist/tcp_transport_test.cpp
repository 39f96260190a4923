// Ranks that are connected over the loopback, each on a thread of its own.

#include "attune/dist/tcp_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "attune/dist/point_to_point_communicator.h"
#include "attune/dist/tcp_lobby.h"
#include "attune/dist/tcp_socket.h"
#include "tests/support/errors.h"
#include "tests/support/free_port.h"
#include "tests/support/in_process_ranks.h"
#include "tests/support/wait.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Transports = std::vector<std::unique_ptr<Transport>>;

TimePoint soon() {
  return TimePoint::clock::now() + std::chrono::seconds(20);
}

TcpRun run_of(int rank, int size, uint16_t port) {
  return {.rank = rank, .size = size, .address = "127.0.0.1", .port = port, .token = "", .seconds = 60};
}

// Calls body(rank) on a thread for each; throws what the first of them threw.
void on_threads(int ranks, const std::function<void(int)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
  }
  if (first) std::rethrow_exception(first);
}

// As run_in_process(), over TCP.
void run_over_tcp(int ranks, const std::function<void(Communicator&)>& body) {
  const uint16_t port = free_port();
  on_threads(ranks, [&](int rank) {
    const ThreadScope one_thread(1);
    PointToPointCommunicator communicator([&] { return make_tcp_transport(run_of(rank, ranks, port)); });
    try {
      body(communicator);
    } catch (...) {
      communicator.abort(1);
      throw;
    }
  });
}

Transports connected(int ranks) {
  const uint16_t port = free_port();
  Transports transports(static_cast<size_t>(ranks));
  on_threads(ranks,
             [&](int rank) { transports[static_cast<size_t>(rank)] = make_tcp_transport(run_of(rank, ranks, port)); });
  return transports;
}

std::span<const std::byte> bytes_in(const std::vector<float>& x) {
  return std::as_bytes(std::span(x));
}

// What the operations give a rank, one after the other.
std::vector<float> outcome_for(Communicator& communicator, int64_t count) {
  Random random(23, static_cast<uint64_t>(communicator.rank()));
  std::vector<float> mine(static_cast<size_t>(count)), all;
  for (float& x : mine) x = static_cast<float>(random.normal());
  const auto keep = [&](const std::vector<float>& x) { all.insert(all.end(), x.begin(), x.end()); };
  std::vector<float> sum = mine, parts = mine, sent = mine;
  communicator.all_reduce(std::span(sum));
  keep(sum);
  communicator.reduce_scatter(std::span(parts));
  communicator.all_gather(std::span(parts));
  keep(parts);
  communicator.broadcast(std::as_writable_bytes(std::span(sent)), communicator.size() - 1);
  keep(sent);
  mine.resize(mine.size() * static_cast<size_t>(communicator.rank()) / 2);  // each has another number
  for (const std::vector<std::byte>& bytes : communicator.gather(bytes_in(mine), 0)) {
    all.push_back(static_cast<float>(bytes.size()));
    for (const std::byte b : bytes) all.push_back(static_cast<float>(std::to_integer<int>(b)));
  }
  keep(communicator.all_gather_values(static_cast<float>(random.normal())));
  communicator.barrier();
  return all;
}

class TcpCollectives : public ::testing::TestWithParam<std::tuple<int, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(RanksAndCounts, TcpCollectives,
                         ::testing::Combine(::testing::Values(2, 3, 4, 5, 8), ::testing::Values<int64_t>(0, 1, 1001)));

TEST_P(TcpCollectives, AreThoseBetweenThreadsToTheBit) {
  const auto [ranks, count] = GetParam();
  std::vector<std::vector<float>> expected(static_cast<size_t>(ranks)), found = expected;
  const int64_t numbers = count;
  run_in_process(ranks, [&](Communicator& communicator) {
    expected[static_cast<size_t>(communicator.rank())] = outcome_for(communicator, numbers);
  });
  run_over_tcp(ranks, [&](Communicator& communicator) {
    found[static_cast<size_t>(communicator.rank())] = outcome_for(communicator, numbers);
  });
  EXPECT_EQ(found, expected);
}

TEST(TcpTransport, ASumOfMegabytesIsThatBetweenThreads) {
  std::vector<float> results[2];
  const auto sum = [](Communicator& communicator, std::vector<float>& result) {
    std::vector<float> x(3'000'001);
    std::iota(x.begin(), x.end(), static_cast<float>(communicator.rank()));
    communicator.all_reduce(std::span(x));
    if (communicator.rank() == 0) result = x;
  };
  run_in_process(3, [&](Communicator& communicator) { sum(communicator, results[0]); });
  run_over_tcp(3, [&](Communicator& communicator) { sum(communicator, results[1]); });
  EXPECT_TRUE(results[0] == results[1]);
}

// More than any buffer holds: none can send all before it receives.
TEST(TcpTransport, LargeMessagesGoBothWaysAtOnce) {
  constexpr size_t kBytes = size_t{24} << 20;
  for (const int ranks : {2, 3}) {
    const Transports transports = connected(ranks);
    on_threads(ranks, [&](int rank) {
      const std::vector<std::byte> out(kBytes, static_cast<std::byte>(rank));
      std::vector<std::byte> in(kBytes);
      const int before = (rank - 1 + ranks) % ranks;
      transports[static_cast<size_t>(rank)]->exchange((rank + 1) % ranks, out, before, in);
      EXPECT_TRUE(in == std::vector<std::byte>(kBytes, static_cast<std::byte>(before)));
    });
  }
}

// A connection with rank 0, as soon as it listens.
Descriptor call_of_a_stranger(uint16_t port) {
  OpenedSocket opened;
  EXPECT_TRUE(becomes([&] {
    opened = connect_to(addresses_of_host("127.0.0.1", port).at(0), soon());
    return opened.error == 0;
  }));
  return std::move(opened.socket);
}

// How a connection ends of which less is read than fits here.
int end_of(const Descriptor& socket) {
  std::array<std::byte, 2000> bytes{};
  return receive_all(socket, bytes, soon());
}

TEST(TcpTransport, StrangersAreDroppedAndKeepNobodyFromComing) {
  const uint16_t port = free_port();
  Transports transports(2);
  std::future<void> first = std::async(std::launch::async, [&] {
    TcpRun run = run_of(0, 2, port);
    run.greeting_seconds = 0.3;
    transports[0] = make_tcp_transport(run);
  });
  const Descriptor silent = call_of_a_stranger(port), rubbish = call_of_a_stranger(port),
                   half = call_of_a_stranger(port);
  const std::vector<std::byte> noise(1000, std::byte{'x'});
  EXPECT_EQ(send_all(rubbish, noise, soon()), 0);
  const Greeting greeting = greeting_of(run_of(1, 2, port), 1);
  EXPECT_EQ(send_all(half, std::as_bytes(std::span(&greeting, 1)).first(20), soon()), 0);
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 100; ++i) crowd.push_back(call_of_a_stranger(port));  // more than are kept
  for (const Descriptor* stranger : {&silent, &rubbish, &half}) EXPECT_EQ(end_of(*stranger), ECONNRESET);
  transports[1] = make_tcp_transport(run_of(1, 2, port));
  first.get();
  std::array<std::byte, 3> in{};
  on_threads(2, [&](int rank) {
    const std::array<std::byte, 3> out{std::byte{1}, std::byte{2}, std::byte{3}};
    if (rank == 0) transports[0]->exchange(1, out, Transport::kNobody, {});
    if (rank == 1) transports[1]->exchange(Transport::kNobody, {}, 0, in);
  });
  EXPECT_EQ(in[2], std::byte{3});
}

TEST(TcpTransport, AMissingRankIsNamed) {
  const uint16_t port = free_port();
  std::array<std::string, 2> said;
  on_threads(2, [&](int rank) {
    TcpRun run = run_of(rank, 4, port);
    run.seconds = 2;
    said[static_cast<size_t>(rank)] = message_of<CommunicationError>([&] { make_tcp_transport(run); });
  });
  EXPECT_THAT(said[0], AllOf(HasSubstr("rank 0: 2 of 4 ranks did not come to 127.0.0.1:"),
                             HasSubstr("within 2 s: ranks 2, 3; only processes of this machine")));
  EXPECT_THAT(said[1], HasSubstr("rank 1: "));
}

TEST(TcpTransport, AMissingFirstRankIsNamed) {
  TcpRun run = run_of(1, 2, free_port());
  run.seconds = 0.3;
  EXPECT_THAT(message_of<CommunicationError>([&] { make_tcp_transport(run); }),
              AllOf(HasSubstr("rank 1: rank 0 is missing: MASTER_ADDR = 127.0.0.1"), HasSubstr("refused")));
}

TEST(TcpTransport, ASecondProcessOfOneRankIsRefused) {
  const uint16_t port = free_port();
  std::atomic<int> refused{0};
  std::mutex mutex;
  Transports transports;  // they stay, since one that leaves ends the others
  const auto take_part = [&](int rank) {
    try {
      std::unique_ptr<Transport> made = make_tcp_transport(run_of(rank, 3, port));
      const std::lock_guard lock(mutex);
      transports.push_back(std::move(made));
    } catch (const CommunicationError& error) {
      EXPECT_THAT(error.what(), HasSubstr("another process has the same rank"));
      ++refused;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (const int rank : {0, 1, 1}) threads.emplace_back(take_part, rank);
    EXPECT_TRUE(becomes([&] { return refused == 1; }));
    threads.emplace_back(take_part, 2);
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(transports.size(), 3u);
}

TEST(TcpTransport, ARankThatLeftTheRendezvousMayComeAgain) {
  const uint16_t port = free_port();
  Transports transports(3);
  const auto start = [&](size_t rank) {
    return std::async(std::launch::async, [&transports, rank, port] {
      transports[rank] = make_tcp_transport(run_of(static_cast<int>(rank), 3, port));
    });
  };
  std::future<void> first = start(0);
  {
    const Descriptor dies = call_of_a_stranger(port);
    const Greeting greeting = greeting_of(run_of(1, 3, port), 1);
    Answer answer;
    EXPECT_EQ(send_all(dies, std::as_bytes(std::span(&greeting, 1)), soon()), 0);
    EXPECT_EQ(receive_all(dies, std::as_writable_bytes(std::span(&answer, 1)), soon()), 0);
    EXPECT_TRUE(is_known(answer));
    EXPECT_EQ(answer.verdict, Verdict::welcome);
  }
  std::future<void> third = start(2), second = start(1);
  for (std::future<void>* rank : {&first, &second, &third}) rank->get();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(transports[static_cast<size_t>(rank)]->rank(), rank);
}

TEST(TcpTransport, ProcessesOfOtherRunsAreRefused) {
  const uint16_t port = free_port();
  std::jthread first([&] {
    TcpRun run = run_of(0, 2, port);
    run.seconds = 3;
    EXPECT_THAT(message_of<CommunicationError>([&] { make_tcp_transport(run); }),
                AllOf(HasSubstr("1 of 2 ranks did not come"), HasSubstr("rank 1 of 3 came from 127.0.0.1:"),
                      HasSubstr("it has another WORLD_SIZE")));
  });
  TcpRun other_token = run_of(1, 2, port);
  other_token.token = "another";
  EXPECT_THAT(message_of<CommunicationError>([&] { make_tcp_transport(other_token); }),
              AllOf(HasSubstr("rank 1 of 2 is refused at 127.0.0.1:"), HasSubstr("ATTUNE_RUN_TOKEN")));
  EXPECT_THAT(message_of<CommunicationError>([&] { make_tcp_transport(run_of(1, 3, port)); }),
              HasSubstr("it has another WORLD_SIZE"));
}

TEST(TcpTransport, APortOfAnotherProgramIsAnError) {
  const OpenedSocket other = listen_at(addresses_of_host("127.0.0.1", 0).at(0));
  ASSERT_EQ(other.error, 0);
  const uint16_t port = local_address(other.socket).port();
  EXPECT_THAT(message_of<ConfigError>([&] { make_tcp_transport(run_of(0, 2, port)); }),
              HasSubstr("another program does; set ATTUNE_MASTER_PORT"));
  std::jthread server([&] {
    OpenedSocket client;
    ASSERT_TRUE(becomes([&] {
      client = accept_at(other.socket);
      return client.error == 0;
    }));
    const std::vector<std::byte> text(100, std::byte{'x'});
    EXPECT_EQ(send_all(client.socket, text, soon()), 0);
    end_of(client.socket);
  });
  EXPECT_THAT(message_of<CommunicationError>([&] { make_tcp_transport(run_of(1, 2, port)); }),
              HasSubstr("is no rank of attune"));
}

TEST(TcpTransport, AnAddressThatIsNotOfThisMachineIsAnError) {
  TcpRun run = run_of(0, 2, free_port());
  run.address = "192.0.2.1";  // of no machine: for documentation (RFC 5737)
  EXPECT_THAT(message_of<ConfigError>([&] { make_tcp_transport(run); }),
              HasSubstr("rank 0 cannot listen at MASTER_ADDR = 192.0.2.1"));
  run.address = "no such name";
  EXPECT_THAT(message_of<ConfigError>([&] { make_tcp_transport(run); }), HasSubstr("no such name"));
}

// The others wait for each other, and one of them for the rank that goes.
TEST(TcpTransport, AllOthersNameTheRankThatWent) {
  Transports transports = connected(4);
  on_threads(4, [&](int rank) {
    if (rank == 3) {
      transports[3].reset();
      return;
    }
    std::array<std::byte, 8> in{};
    Transport& mine = *transports[static_cast<size_t>(rank)];
    const auto receive = [&] { mine.exchange(Transport::kNobody, {}, rank + 1, in); };
    EXPECT_THAT(message_of<CommunicationError>(receive), HasSubstr("rank 3 has left the run"));
    EXPECT_THAT(message_of<CommunicationError>(receive), HasSubstr("rank 3 has left"));
  });
}

TEST(TcpTransport, AbortEndsWhatIsWaitedFor) {
  for (const bool sends : {false, true}) {
    const Transports transports = connected(2);
    std::vector<std::byte> large(size_t{32} << 20), small(1);
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      transports[0]->abort(1);
    });
    const auto wait = [&] {
      if (sends) transports[0]->exchange(1, large, Transport::kNobody, {});
      if (!sends) transports[0]->exchange(Transport::kNobody, {}, 1, small);
    };
    EXPECT_THAT(message_of<CommunicationError>(wait), HasSubstr("rank 0 has left the run"));
    const auto receive = [&] { transports[1]->exchange(Transport::kNobody, {}, 0, large); };
    EXPECT_THAT(message_of<CommunicationError>(receive), HasSubstr("rank 0 has left the run"));
  }
}

// The sender does not wait for a message, only for room.
TEST(TcpTransport, AbortOfTheReceiverEndsTheSender) {
  const Transports transports = connected(2);
  const std::vector<std::byte> large(size_t{32} << 20);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    transports[1]->abort(1);
  });
  EXPECT_THAT(message_of<CommunicationError>([&] { transports[0]->exchange(1, large, Transport::kNobody, {}); }),
              HasSubstr("rank 1 has left the run"));
}

TEST(TcpTransport, AMessageOfAnotherSizeIsAnError) {
  const Transports transports = connected(2);
  on_threads(2, [&](int rank) {
    std::array<std::byte, 4> four{};
    std::array<std::byte, 8> eight{};
    if (rank == 0) {
      transports[0]->exchange(1, four, Transport::kNobody, {});
      EXPECT_THAT(message_of<CommunicationError>([&] { transports[0]->exchange(Transport::kNobody, {}, 1, four); }),
                  HasSubstr("rank 1 has left the run"));
      return;
    }
    EXPECT_THAT(message_of<CommunicationError>([&] { transports[1]->exchange(Transport::kNobody, {}, 0, eight); }),
                HasSubstr("rank 0 sent 4 bytes where 8 are expected"));
  });
}

TEST(TcpTransport, TheFailureOfOneRankEndsTheOthers) {
  std::atomic<int> failed{0};
  const std::string message = message_of<ConfigError>([&] {
    run_over_tcp(4, [&](Communicator& communicator) {
      communicator.barrier();  // all are connected
      if (communicator.rank() == 2) throw ConfigError("rank 2 has had enough");
      std::vector<float> x(10);
      try {
        communicator.all_reduce(std::span(x));
      } catch (const CommunicationError& error) {
        EXPECT_THAT(error.what(), HasSubstr("has left the run"));
        ++failed;
      }
    });
  });
  EXPECT_EQ(message, "rank 2 has had enough");
  EXPECT_EQ(failed, 3);
}

TEST(SocketAddress, SaysHostAndPort) {
  const SocketAddress four = addresses_of_host("127.0.0.1", 80).at(0), six = addresses_of_host("::1", 80).at(0);
  EXPECT_EQ(four.text(), "127.0.0.1:80");
  EXPECT_EQ(six.text(), "[::1]:80");
  EXPECT_EQ(four.with_port(8080).port(), 8080);
  EXPECT_EQ(six.with_port(8080).text(), "[::1]:8080");
  EXPECT_TRUE(four.is_loopback());
  EXPECT_TRUE(six.is_loopback());
  EXPECT_FALSE(addresses_of_host("192.0.2.1", 1).at(0).is_loopback());
  EXPECT_EQ(SocketAddress().host(), "?");
}

// The other ranks connect to a rank at the address by which it reaches rank 0.
TEST(SocketAddress, ThoseThatOnlyThisMachineReachesComeLast) {
  std::vector<SocketAddress> given;
  for (const char* host : {"127.0.1.1", "192.0.2.2", "::1", "192.0.2.1"})
    given.push_back(addresses_of_host(host, 80).at(0));
  std::vector<std::string> hosts;
  for (const SocketAddress& address : loopback_last(given)) hosts.push_back(address.host());
  EXPECT_THAT(hosts, ElementsAre("192.0.2.2", "192.0.2.1", "127.0.1.1", "::1"));
}

}  // namespace
}  // namespace attune
