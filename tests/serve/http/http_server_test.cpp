#include "attune/serve/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "attune/base/random.h"
#include "attune/serve/http/host_addresses.h"
#include "attune/serve/http/http_error.h"
#include "tests/serve/slow_reader.h"
#include "tests/support/http_client.h"
#include "tests/support/wait.h"

namespace attune::serve {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Shared = std::shared_ptr<Exchange>;

// Answers with what it was asked; keeps what is asked at /wait.
class EchoServer {
 public:
  explicit EchoServer(HttpOptions options = {},
                      const HttpServer::ClientCheck& is_known = HttpServer::everybody_is_known) {
    options.port = 0;
    const auto echo = [this](const Shared& exchange) {
      const HttpRequest& r = exchange->request();
      if (r.path == "/wait") {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(exchange);
        return;
      }
      exchange->respond({.body = r.method + " " + r.path + "?" + r.query + " " + r.body});
    };
    server = std::make_unique<HttpServer>(options, echo, HttpServer::plain_refusal, is_known);
  }
  Shared waiting() {
    Shared found;
    becomes([&] {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return false;
      found = std::move(waiting_.back());
      waiting_.pop_back();
      return true;
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
  client.send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");  // pipelined
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
  const auto answer_to = [&echo](const std::string& version, const std::string& codings) {
    HttpClient client = echo.client();
    client.send("POST /p HTTP/" + version + "\r\nHost: a\r\n" + codings +
                "\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    const std::string answer = client.read_all();
    EXPECT_THAT(answer, Not(HasSubstr("smuggled"))) << codings;
    return answer;
  };
  const std::string field = "Transfer-Encoding:", chunked = field + " chunked\r\n";
  for (const char* coding : {" gzip", " gzip, chunked", " identity", "", " ,", " chunked, chunked"})
    EXPECT_THAT(answer_to("1.1", field + coding + "\r\n"), StartsWith("HTTP/1.1 501")) << coding;
  EXPECT_THAT(answer_to("1.1", field + "\r\n" + field + " gzip\r\n"), StartsWith("HTTP/1.1 501"));
  EXPECT_THAT(answer_to("1.1", field + "\r\n" + chunked), StartsWith("HTTP/1.1 501"));
  EXPECT_THAT(answer_to("1.1", field + " gzip\r\n" + chunked), StartsWith("HTTP/1.1 501"));
  EXPECT_THAT(answer_to("1.1", chunked + chunked), StartsWith("HTTP/1.1 400"));
  for (const std::string& coding : {chunked, field + "\r\n", field + " gzip\r\n"})
    EXPECT_THAT(answer_to("1.0", "Connection: keep-alive\r\n" + coding), StartsWith("HTTP/1.1 400")) << coding;
}

TEST(HttpServer, WhatFollowsABodyIsNoHeader) {
  EchoServer echo;
  HttpClient client = echo.client();
  client.send(
      "POST /wait HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n"
      "Authorization: Bearer x\r\n\r\n");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->request().body, "body");
  EXPECT_EQ(exchange->request().header("host"), "a");
  EXPECT_EQ(exchange->request().header("authorization"), "");
}

TEST(HttpServer, ARequestNamesOneHost) {
  const EchoServer echo;
  const auto answer_to = [&echo](const std::string& request) {
    HttpClient client = echo.client();
    client.send("GET / HTTP/" + request + "Connection: close\r\n\r\n");
    return client.read_all();
  };
  EXPECT_THAT(answer_to("1.1\r\nHost: a\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer_to("1.1\r\nHost:\r\n"), StartsWith("HTTP/1.1 200")) << "a target without one";
  EXPECT_THAT(answer_to("1.0\r\n"), StartsWith("HTTP/1.0 200"));
  EXPECT_THAT(answer_to("1.1\r\n"), StartsWith("HTTP/1.1 400"));
  for (const char* version : {"1.0", "1.1"})
    EXPECT_THAT(answer_to(std::string(version) + "\r\nHost: a\r\nHost: b\r\n"), StartsWith("HTTP/1.1 400")) << version;
}

TEST(HttpServer, TheHostOfATargetGoesBeforeTheHeader) {
  EchoServer echo;
  HttpClient client = echo.client();
  client.send("GET HTTP://127.0.0.1:8080/wait?a=b HTTP/1.1\r\nHost: other\r\n\r\n");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  EXPECT_EQ(exchange->request().path, "/wait");
  EXPECT_EQ(exchange->request().query, "a=b");
  EXPECT_EQ(exchange->request().header("host"), "127.0.0.1:8080");
  for (const auto& [target, shown] : {std::pair{"https://a", "/?"}, {"http://a?b", "/?b"}, {"http://a/b", "/b?"}}) {
    HttpClient other = echo.client();
    other.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(other.read_all(), EndsWith("GET " + std::string(shown) + " ")) << target;
  }
}

TEST(HttpServer, AnswersHaveADate) {
  EchoServer echo;
  const char* date = "\r\nDate: [A-Z][a-z][a-z], [0-9][0-9] [A-Z][a-z][a-z] 2[0-9]+ [0-9:]+ GMT\r\n";
  HttpClient client = echo.client();
  client.get("/");
  EXPECT_THAT(client.read_until("GET"), ContainsRegex(date));
  client.get("/wait");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  exchange->begin({.content_type = "text/event-stream"});
  exchange->end();
  EXPECT_THAT(client.read_until("0\r\n\r\n"), ContainsRegex(date));
  client.send("what is this\r\n\r\n");
  EXPECT_THAT(client.read_all(), ContainsRegex(date));
}

TEST(HttpServer, OnlyClientsThatKnowItAreToldToGoOn) {
  const EchoServer echo;
  const std::string rest = "\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
  HttpClient client = echo.client();
  client.send("POST /p HTTP/1.1" + rest);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue\r\n"));
  client.send("body");
  EXPECT_THAT(client.read_until("body"), StartsWith("HTTP/1.1 200"));
  HttpClient older = echo.client();
  older.send("POST /p HTTP/1.0" + rest + "body");
  EXPECT_THAT(older.read_all(), AllOf(StartsWith("HTTP/1.0 200"), EndsWith("POST /p? body")));
}

TEST(HttpServer, AClientThatGoesAwayIsNoticedSoon) {
  EchoServer echo;
  const Shared exchange = left_by_a_client(echo, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(becomes([&] { return exchange->gone()->load(); }, 2));
  exchange->respond({.body = "nobody reads this"});
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }));
}

TEST(HttpServer, AlsoOneThatHasSentMore) {
  EchoServer echo;
  const Shared exchange =
      left_by_a_client(echo, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /later HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_NE(exchange, nullptr);
  EXPECT_TRUE(becomes([&] { return exchange->gone()->load(); }, 2));
}

TEST(HttpServer, LimitsAreKept) {
  const EchoServer echo({.header_bytes = 1024, .body_bytes = 100});
  HttpClient header = echo.client();
  header.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'x') + "\r\n\r\n");
  EXPECT_THAT(header.read_all(), StartsWith("HTTP/1.1 431"));
  HttpClient body = echo.client();
  body.post("/", std::string(101, 'x'));
  EXPECT_THAT(body.read_all(), StartsWith("HTTP/1.1 413"));
  HttpClient chunked = echo.client();
  chunked.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" + std::string(128, 'x') +
               "\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.read_all(), StartsWith("HTTP/1.1 413"));
  HttpClient none = echo.client();
  none.send("what is this\r\n\r\n");
  EXPECT_THAT(none.read_all(), StartsWith("HTTP/1.1 400"));
}

// The parser has no limit for the line before a chunk, nor for what follows the last one.
TEST(HttpServer, WhatStandsBetweenChunksIsLimited) {
  const EchoServer echo({.body_seconds = 5});
  for (const char* begin : {"1;", "0\r\nX: "}) {
    HttpClient client = echo.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(begin);
    client.send(std::string(1 << 20, 'x'));
    EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 431")) << begin;
  }
}

// A client has its time for each part of an answer, not for the whole.
TEST(HttpServer, AClientMayReadSlowly) {
  const std::string large(8 << 20, 'x');  // in 3.2 seconds, half of which the system may hold
  for (const bool streamed : {false, true}) {
    EchoServer echo({.write_seconds = 1});
    HttpClient client = echo.client();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const Shared exchange = echo.waiting();
    ASSERT_NE(exchange, nullptr);
    if (streamed) {
      exchange->begin({});
      exchange->write(large);
      exchange->end();
    } else {
      exchange->respond({.body = large});
    }
    const std::string answer = read_slowly(client, std::chrono::milliseconds(100));
    EXPECT_GT(answer.size(), large.size()) << streamed;
    EXPECT_TRUE(answer.ends_with(streamed ? "x\r\n0\r\n\r\n" : "x"));
  }
}

TEST(HttpServer, AClientThatReadsNothingIsSentAway) {
  EchoServer echo({.write_seconds = 0.3});
  HttpClient silent = echo.client();
  silent.get("/wait");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  exchange->respond({.body = std::string(64 << 20, 'x')});
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }, 10));
}

TEST(HttpServer, AStreamThatIsNotReadEnds) {
  EchoServer echo({.unsent_bytes = 1 << 20, .write_seconds = 0.3});
  HttpClient silent = echo.client();
  silent.get("/wait");
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  exchange->begin({.content_type = "text/event-stream"});
  const std::string piece(64 << 10, 'x');
  int64_t written = 0;
  for (; !*exchange->gone() && written < (64 << 20); written += std::ssize(piece)) exchange->write(piece);
  EXPECT_TRUE(*exchange->unwanted());
  EXPECT_LT(written, 64 << 20);
  exchange->end();
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }, 10));
  EXPECT_FALSE(read_slowly(silent, std::chrono::milliseconds(0)).ends_with("\r\n0\r\n\r\n")) << "it has no end";
}

TEST(HttpServer, BodiesOfUnknownClientsLeaveRoomForThoseOfOthers) {
  const auto is_known = [](const HttpRequest& head) { return head.header("x-api-key") == "known"; };
  EchoServer echo({.body_bytes = 100'000, .bodies_bytes = 200'000}, is_known);
  HttpClient large = echo.client();
  large.post("/wait", std::string(100'000, 'x'));
  const Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  HttpClient unknown = echo.client();
  unknown.post("/unknown", "body");
  const std::string refused = unknown.read_all();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("without a known key"));
  HttpClient known = echo.client();
  known.post("/known", std::string(100'000, 'y'), "X-Api-Key: known\r\nConnection: close\r\n");
  EXPECT_THAT(known.read_all(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, AllBodiesTogetherAreLimited) {
  EchoServer echo({.body_bytes = 100'000, .bodies_bytes = 1});  // counts as two bodies
  HttpClient large = echo.client(), other = echo.client();
  large.post("/wait", std::string(100'000, 'x'));
  Shared exchange = echo.waiting();
  ASSERT_NE(exchange, nullptr);
  other.post("/wait", std::string(100'000, 'x'));
  const Shared second = echo.waiting();
  ASSERT_NE(second, nullptr);
  HttpClient next = echo.client();
  next.post("/next", "body");
  EXPECT_THAT(next.read_all(), StartsWith("HTTP/1.1 503"));
  HttpClient without = echo.client();
  without.get("/");
  EXPECT_THAT(without.read_until("GET"), StartsWith("HTTP/1.1 200"));
  exchange->respond({.body = "done"});
  EXPECT_THAT(large.read_until("done"), StartsWith("HTTP/1.1 200"));
  exchange.reset();
  const auto is_taken = [&] {
    HttpClient later = echo.client();
    later.post("/later", "body", "Connection: close\r\n");
    return later.read_all().starts_with("HTTP/1.1 200");
  };
  EXPECT_TRUE(becomes(is_taken));
}

// Whoever works on a request may keep it for a while after its client has gone.
TEST(HttpServer, ABodyCountsAsLongAsItIsKept) {
  EchoServer echo({.body_bytes = 100'000, .bodies_bytes = 1});  // counts as two bodies
  std::vector<Shared> kept;
  for (int i = 0; i < 2; ++i) {
    kept.push_back(left_by_a_client(
        echo, "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x')));
    ASSERT_NE(kept.back(), nullptr);
  }
  EXPECT_TRUE(becomes([&] { return echo.server->connections() == 0; }));
  const auto answer = [&] {
    HttpClient next = echo.client();
    next.post("/next", "body", "Connection: close\r\n");
    return next.read_all();
  };
  EXPECT_THAT(answer(), StartsWith("HTTP/1.1 503"));
  kept.clear();
  EXPECT_THAT(answer(), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, EachRequestHasItsTimeForHeaders) {
  const EchoServer echo({.header_seconds = 0.3, .idle_seconds = 600});
  HttpClient client = echo.client();
  for (int i = 0; i < 2; ++i) {
    client.get("/" + std::to_string(i));
    EXPECT_THAT(client.read_until("GET"), StartsWith("HTTP/1.1 200"));
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // idle
  }
  client.send("GET / HT");
  client.read_all();
  EXPECT_TRUE(client.closed());
}

TEST(HttpServer, SlowClientsAndTooManyAreSentAway) {
  const EchoServer echo({.connections = 2, .header_seconds = 0.2, .body_seconds = 0.2});
  HttpClient slow = echo.client();
  slow.send("GET / HT");
  slow.read_all();
  EXPECT_TRUE(slow.closed());
  HttpClient half = echo.client();
  half.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
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
                                "Host: a",
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

}  // namespace
}  // namespace attune::serve
