#include "attune/serve/http/acceptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& host, int64_t port) {
  boost::asio::io_context io;
  return message_of<ConfigError>([&] { listen_at_all_addresses(io, host, port); });
}

TEST(Acceptors, AddressesThatCannotBeUsedAreNamed) {
  boost::asio::io_context io;
  const auto here = listen_at_all_addresses(io, "127.0.0.1", 0);
  const int64_t taken = here.at(0).local_endpoint().port();
  EXPECT_THAT(error_of("nowhere", 0), HasSubstr("nowhere"));
  EXPECT_EQ(error_of("127.0.0.1", taken), "127.0.0.1:" + std::to_string(taken) + ": Address already in use");
  EXPECT_EQ(error_of("192.0.2.1", 0), "host = \"192.0.2.1\": this machine has no such address");
  for (const int64_t port : {-1, 65536})
    EXPECT_EQ(error_of("127.0.0.1", port), "port = " + std::to_string(port) + ": needs a number from 0 to 65535");
}

// "localhost" may be 127.0.0.1 and ::1.
TEST(Acceptors, AllAddressesHaveOnePort) {
  boost::asio::io_context io;
  const auto acceptors = listen_at_all_addresses(io, "localhost", 0);
  ASSERT_FALSE(acceptors.empty());
  for (const auto& acceptor : acceptors) {
    EXPECT_TRUE(acceptor.is_open());
    EXPECT_NE(acceptor.local_endpoint().port(), 0);
    EXPECT_EQ(acceptor.local_endpoint().port(), acceptors.at(0).local_endpoint().port());
  }
}

}  // namespace
}  // namespace attune::serve
