#include "attune/serve/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "attune/base/random.h"
#include "attune/serve/http/host_addresses.h"
#include "attune/serve/http/http_error.h"
#include "tests/support/errors.h"
#include "tests/support/http_client.h"
#include "tests/support/wait.h"

namespace attune::serve {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Shared = std::shared_ptr<Exchange>;

// Answers with what it was asked; keeps what is asked at /wait.
class EchoServer {
 public:
  explicit EchoServer(HttpOptions options = {}) {
    options.port = 0;
    server = std::make_unique<HttpServer>(options, [this](const Shared& exchange) {
      const HttpRequest& r = exchange->request();
      if (r.path == "/wait") {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(exchange);
        return;
      }
      exchange->respond({.body = r.method + " " + r.path + "?" + r.query + " " + r.body});
    });
  }
  Shared waiting() {
    Shared found;
    becomes([&] {
      const std::lock_guard lock(mutex_);
      if (!waiting_.empty()) found = waiting_.back();
      return found != nullptr;
    });
    return found;
  }
  HttpClient client() const { return HttpClient(server->port()); }

 private:
  std::mutex mutex_;
  std::vector<Shared> waiting_;

 public:
  std::unique_ptr<HttpServer> server;  // goes first
};

// What became of the request of a client that sends `bytes`, among them a request of /wait, and goes away.
Shared left_by_a_client(EchoServer& echo, std::string_view bytes) {
  HttpClient client = echo.client();
  client.send(bytes);
  Shared exchange = echo.waiting();
  if (exchange == nullptr || *exchange->gone()) return nullptr;
  return exchange;
}

TEST(HttpServer, AnswersOneRequestAfterTheOtherOnAConnection) {
  const EchoServer echo;
  HttpClient client = echo.client();
  client.get("/a?b=c");
  EXPECT_THAT(client.read_until("GET /a?b=c "), StartsWith("HTTP/1.1 200 OK\r\n"));
  client.post("/p", "body");
  EXPECT_THAT(client.read_until("POST /p? body"), HasSubstr("Content-Length: 13\r\n"));
  client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");  // pipelined
  EXPECT_THAT(client.read_all(), HasSubstr("GET /2?"));
  EXPECT_TRUE(client.closed());
}

TEST(HttpServer, AStreamComesInChunksAsItIsWritten) {
  EchoServer echo;
  HttpClient client = echo.client();
  client.get("/wait");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  exchange->begin({.content_type = "text/event-stream"});
  exchange->write("one");
  EXPECT_THAT(client.read_until("3\r\none\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  exchange->write("two!");
  EXPECT_THAT(client.read_until("two!"), HasSubstr("4\r\ntwo!\r\n"));
  exchange->end();
  EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr("0\r\n\r\n"));
  client.get("/next");
  EXPECT_THAT(client.read_until("/next"), HasSubstr("200 OK"));
}

TEST(HttpServer, AStreamForAnOlderClientEndsWithTheConnection) {
  EchoServer echo;
  HttpClient client = echo.client();
  client.send("GET /wait HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  exchange->begin({.content_type = "text/event-stream"});
  exchange->write("one");
  exchange->write("two");
  exchange->end();
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, EndsWith("\r\n\r\nonetwo"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
  EXPECT_TRUE(client.closed());
}

TEST(HttpServer, ABodyInAnotherCodingIsNotTheNextRequest) {
  const EchoServer echo;
  for (const char* coding : {"gzip", "gzip, chunked", "identity"}) {
    HttpClient client = echo.client();
    client.send("POST /p HTTP/1.1\r\nTransfer-Encoding: " + std::string(coding) +
                "\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
    const std::string answer = client.read_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 501")) << coding;
    EXPECT_THAT(answer, Not(HasSubstr("smuggled"))) << coding;
  }
}

TEST(HttpServer, AClientThatGoesAwayIsNoticedSoon) {
  EchoServer echo;
  const Shared exchange = left_by_a_client(echo, "GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(becomes([&] { return exchange->gone()->load(); }, 2));
  exchange->respond({.body = "nobody reads this"});
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }));
}

TEST(HttpServer, AlsoOneThatHasSentMore) {
  EchoServer echo;
  const Shared exchange = left_by_a_client(echo, "GET /wait HTTP/1.1\r\n\r\nGET /later HTTP/1.1\r\n\r\n");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(becomes([&] { return exchange->gone()->load(); }, 2));
}

TEST(HttpServer, LimitsAreKept) {
  const EchoServer echo({.header_bytes = 1024, .body_bytes = 100});
  HttpClient header = echo.client();
  header.send("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n");
  EXPECT_THAT(header.read_all(), StartsWith("HTTP/1.1 431"));
  HttpClient body = echo.client();
  body.post("/", std::string(101, 'x'));
  EXPECT_THAT(body.read_all(), StartsWith("HTTP/1.1 413"));
  HttpClient chunked = echo.client();
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" + std::string(128, 'x') + "\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.read_all(), StartsWith("HTTP/1.1 413"));
  HttpClient none = echo.client();
  none.send("what is this\r\n\r\n");
  EXPECT_THAT(none.read_all(), StartsWith("HTTP/1.1 400"));
}

TEST(HttpServer, SlowClientsAndTooManyAreSentAway) {
  const EchoServer echo({.connections = 2, .header_seconds = 0.2, .body_seconds = 0.2});
  HttpClient slow = echo.client();
  slow.send("GET / HT");
  slow.read_all();
  EXPECT_TRUE(slow.closed());
  HttpClient half = echo.client();
  half.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
  half.read_all();
  EXPECT_TRUE(half.closed());
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }));
  HttpClient first = echo.client(), second = echo.client();
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 2; }));
  HttpClient third = echo.client();
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503"));
}

TEST(HttpServer, DrainsBeforeItEnds) {
  EchoServer echo;
  HttpClient idle = echo.client(), busy = echo.client();
  idle.get("/");
  idle.read_until("GET");
  busy.get("/wait");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  echo.server->stop_accepting();
  idle.read_all();
  EXPECT_TRUE(idle.closed());
  exchange->respond({.body = "last"});
  EXPECT_THAT(busy.read_all(), HasSubstr("last"));
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }));
  EXPECT_THROW(echo.client(), Error);
}

TEST(HttpServer, WhileItDrainsAnAnswerIsTheLastOfItsConnection) {
  const EchoServer echo;
  HttpClient idle = echo.client();
  idle.get("/");
  EXPECT_THAT(idle.read_until("GET"), Not(HasSubstr("Connection: close")));
  echo.server->drain();
  idle.get("/later");
  EXPECT_THAT(idle.read_all(), AllOf(HasSubstr("Connection: close"), HasSubstr("/later")));
  EXPECT_TRUE(idle.closed());
  HttpClient next = echo.client();
  next.get("/next");
  EXPECT_THAT(next.read_all(), AllOf(HasSubstr("Connection: close"), HasSubstr("/next")));
}

TEST(HttpServer, ListensAtTheAddressesOfAName) {
  const EchoServer echo({.host = "localhost"});
  HttpClient client = echo.client();
  client.get("/");
  EXPECT_THAT(client.read_until("GET"), HasSubstr("200 OK"));
  EXPECT_THAT(addresses_of("localhost"), Contains("127.0.0.1"));
  EXPECT_EQ(authority_of("::1", 80), "[::1]:80");
  EXPECT_EQ(authority_of("localhost", 80), "localhost:80");
}

TEST(HttpServer, AnEndWithOpenConnectionsIsClean) {
  Shared exchange;
  {
    EchoServer echo;
    HttpClient client = echo.client();
    client.get("/wait");
    exchange = echo.waiting();
    ASSERT_NE(exchange, nullptr);
    HttpClient other = echo.client();
    other.send("POST / HT");
  }
  EXPECT_TRUE(*exchange->gone());
  exchange->respond({.body = "late"});
}

TEST(HttpServer, AnyBytesLeaveItAtWork) {
  const EchoServer echo({.header_seconds = 0.5, .body_seconds = 0.5});
  Random random(9);
  const std::string pieces[] = {"GET ",
                                "POST ",
                                "/ ",
                                "HTTP/1.1",
                                "\r\n",
                                "\r\n\r\n",
                                "Content-Length: ",
                                "5",
                                "-1",
                                "Transfer-Encoding: chunked",
                                "x",
                                "\0",
                                "Expect: 100-continue",
                                ":",
                                "99999999999999999999"};
  for (int i = 0; i < 300; ++i) {
    HttpClient client = echo.client();
    std::string bytes;
    for (uint64_t n = random.below(20); n > 0; --n) bytes += pieces[random.below(std::size(pieces))];
    client.send(bytes);
  }
  HttpClient client = echo.client();
  client.get("/still");
  EXPECT_THAT(client.read_until("/still"), HasSubstr("200 OK"));
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 1; }));
}

TEST(HttpServer, AddressesThatCannotBeUsedAreNamed) {
  const EchoServer echo;
  const auto nothing = [](const Shared&) {};
  EXPECT_THAT(message_of<ConfigError>([&] { HttpServer({.host = "nowhere"}, nothing); }), HasSubstr("nowhere"));
  EXPECT_THAT(message_of<ConfigError>([&] { HttpServer({.port = echo.server->port()}, nothing); }),
              HasSubstr("in use"));
  EXPECT_THAT(
      message_of<ConfigError>([&] { HttpServer({.port = 0, .tls_certificate = "/no", .tls_key = "/no"}, nothing); }),
      HasSubstr("tls_certificate"));
}

}  // namespace
}  // namespace attune::serve
