#include "attune/serve/origin.h"

#include <gtest/gtest.h>

#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

TEST(Origin, IsOwnWhereHostAndPortAreTheSame) {
  EXPECT_TRUE(is_own_origin("http://localhost:8080", "localhost:8080"));
  EXPECT_TRUE(is_own_origin("http://[::1]:8080", "[::1]:8080"));
  EXPECT_TRUE(is_own_origin("https://Attune.example", "attune.example"));
  EXPECT_TRUE(is_own_origin("https://attune.example", "attune.example:443"));
  EXPECT_TRUE(is_own_origin("http://attune.example:80", "attune.example"));
  EXPECT_FALSE(is_own_origin("http://evil.com", "localhost:8080"));
  EXPECT_FALSE(is_own_origin("http://localhost:8081", "localhost:8080"));
  EXPECT_FALSE(is_own_origin("http://localhost", "localhost:8080"));
  EXPECT_FALSE(is_own_origin("http://localhost:8080.evil.com", "localhost:8080"));
  EXPECT_FALSE(is_own_origin("null", "localhost:8080"));
  EXPECT_FALSE(is_own_origin("http://evil.com", ""));
}

TEST(Origin, IsWhatABrowserWrites) {
  for (const char* origin : {"https://example.com", "http://localhost:3000", "http://127.0.0.1", "http://[::1]:8080",
                             "https://xn--bcher-kva.example", "chrome-extension://abcdefgh"})
    EXPECT_TRUE(is_origin(origin)) << origin;
  for (const char* origin : {"",
                             "foo",
                             "*",
                             "null",
                             "example.com",
                             "://example.com",
                             "https://",
                             "https://example.com/",
                             "https://a b",
                             "https://example.com/page",
                             "https://Example.com",
                             "HTTPS://example.com",
                             "https://example.com:",
                             "https://example.com:x",
                             "https://example.com:443",
                             "http://example.com:80",
                             "http://::1",
                             "https://a@b",
                             "https://*.example.com",
                             "https://a?b",
                             "http://[::1"})
    EXPECT_FALSE(is_origin(origin)) << origin;
}

TEST(Origin, AHostIsAnAddressOrANameThatIsKnown) {
  const std::vector<std::string> names = {"attune.example"};
  for (const char* host : {"127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "[::1]", "localhost", "LocalHost:8080",
                           "attune.example", "Attune.Example:443"})
    EXPECT_TRUE(is_own_host(host, names)) << host;
  for (const char* host : {"evil.com", "evil.com:8080", "localhost.evil.com", "attune.example.evil.com",
                           "127.0.0.1.evil.com", "", ":8080", "[evil]:1", "[", "127.0.0.1:80:80"})
    EXPECT_FALSE(is_own_host(host, names)) << host;
}

TEST(Origin, AHostHasNoPort) {
  for (const char* host : {"attune.example", "Attune.Example", "localhost", "a_b-c", "127.0.0.1", "::1", "[::1]"})
    EXPECT_TRUE(is_host(host)) << host;
  for (const char* host : {"", " ", "a b", "attune.example:443", "https://attune.example", "attune.example/", "a@b",
                           "*.attune.example", "bücher.example", "[::1]:80"})
    EXPECT_FALSE(is_host(host)) << host;
}

TEST(Origin, WithoutKeysAForeignNameOfThisServerIsRefused) {
  ServeConfig config;
  config.security.hosts = {"attune.example"};
  TestService t(config);
  const auto ask = [&](const std::string& host) {
    HttpRequest request{.method = "GET", .path = "/health", .client = "127.0.0.1"};
    if (!host.empty()) request.headers.emplace_back("host", host);
    return t.ask(std::move(request)).status;
  };
  EXPECT_EQ(ask("evil.com:8080"), 403);
  EXPECT_EQ(ask("attune.example"), 200);
  EXPECT_EQ(ask("localhost:8080"), 200);
  EXPECT_EQ(ask(""), 200);
}

// A form of any page is sent by a browser without asking the server first.
TEST(Origin, ForeignPagesDoNothing) {
  ServeConfig config;
  config.security.cors_origins = {"https://named.example"};
  TestService t(config);
  const auto ask = [&](const std::string& path, const std::string& origin) {
    HttpRequest request = post_request(path, "q=dog&source=en&target=de", "application/x-www-form-urlencoded");
    request.headers.emplace_back("host", "127.0.0.1:8080");
    if (!origin.empty()) request.headers.emplace_back("origin", origin);
    return t.ask(std::move(request)).status;
  };
  EXPECT_EQ(ask("/translate", "http://evil.com"), 403);
  EXPECT_EQ(ask("/translate", "null"), 403);
  EXPECT_EQ(ask("/admin/reload", "http://evil.com"), 403);
  EXPECT_FALSE(t.service->reload_asked());
  EXPECT_EQ(ask("/translate", "http://127.0.0.1:8080"), 200);
  EXPECT_EQ(ask("/translate", "https://named.example"), 200);
  EXPECT_EQ(ask("/translate", ""), 200);
}

}  // namespace
}  // namespace attune::serve
