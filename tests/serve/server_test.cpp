// The whole server, over its socket: clients that go away, whatever their requests are at.

#include "attune/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "attune/io/model_folder.h"
#include "attune/models/build.h"
#include "attune/text/character_tokenizer.h"
#include "tests/serve/service_fixture.h"
#include "tests/serve/slow_reader.h"
#include "tests/support/http_client.h"

namespace attune::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a busy machine may take until it notices, also under a sanitizer; on an idle one it is less than 100 ms. Each
// test sees at a counter that the request was cancelled, and did not merely end.
constexpr double kSoon = 20;

constexpr int64_t kPromptTokens = 2048;

// A language model with room for prompts of several pieces.
void write_language_model_for_prompts(const std::filesystem::path& folder) {
  const auto tokenizer = CharacterTokenizer::build_from_texts({joined(small_text())});
  TransformerConfig config;
  config.architecture = Architecture::decoder_lm;
  config.vocab = tokenizer.vocab_size();
  config.d_model = 64;
  config.heads = 4;
  config.layers = 4;
  config.d_ff = 256;
  config.positions = RotaryOptions{};
  config.context_length = kPromptTokens + 64;
  save_model_folder(folder, *build_decoder_lm(config, 1), tokenizer, {.max_tokens = 4}, TextUnit::stream);
}

class ServerTest : public ::testing::Test {
 protected:
  void serve(const std::string& name, int64_t batch, std::function<void(const std::string&)> log = {}) {
    ServeConfig config = config_;
    config.http.port = 0;
    config.limits.texts = 1000;
    config.limits.tokens = int64_t{1} << 22;
    config.models[name] = {.folder = (folder_ / name).string(), .batch = batch, .threads = 1};
    server_.emplace(config, std::move(log));
    server_->load();
    model_ = server_->service().models().find(name);
    running_ = std::thread([this] { server_->run(stop_, reload_); });
  }
  ~ServerTest() override {
    stop_ = true;
    if (running_.joinable()) running_.join();
  }
  HttpClient client(const std::string& path, const Json& body) const {
    HttpClient made(server_->port());
    made.post(path, body.dump());
    return made;
  }
  bool refuses() const {
    try {
      const HttpClient other(server_->port());
      return false;
    } catch (const Error&) {
      return true;
    }
  }
  int64_t at_work() const { return model_->load().waiting + model_->load().running; }
  bool has_line(const std::string& line) {
    const auto exchange = std::make_shared<Exchange>(HttpRequest{.method = "GET", .path = "/metrics"});
    server_->service().handle(exchange);
    return wait_for_answer(*exchange).body.find(line) != std::string::npos;
  }

  ServeConfig config_;  // what a test changes before serve()
  TemporaryFolder folder_;
  std::atomic<bool> stop_{false}, reload_{false};
  std::optional<Server> server_;
  std::shared_ptr<ServedModel> model_;
  std::thread running_;
};

std::string lines_of(int64_t sentences) {
  std::string text;
  for (const std::string& sentence : small_text(sentences)) text += sentence + "\n";
  return text;
}

TEST_F(ServerTest, AClientThatGoesAwayWhileItsRequestWaitsIsNoticed) {
  write_small_model(folder_ / "en-de");
  serve("en-de", 1);
  const Json body = {{"text", lines_of(900)}, {"beam_size", 16}};
  const HttpClient first = client("/v1/translate", body);
  ASSERT_TRUE(becomes([&] { return at_work() > 800; }));
  {
    const HttpClient second = client("/v1/translate", body);
    ASSERT_TRUE(becomes([&] { return model_->admission().requests() == 2 && at_work() > 1000; }));
  }
  EXPECT_TRUE(becomes([&] { return model_->admission().requests() == 1; }, kSoon));
  EXPECT_TRUE(becomes([&] { return has_line("attune_requests_cancelled_total{model=\"en-de\"} 1\n"); }, kSoon));
  EXPECT_GT(at_work(), 50) << "or the first one left no time to wait";
}

TEST_F(ServerTest, AClientThatGoesAwayWhileItsRequestIsAtWorkIsNoticed) {
  write_small_model(folder_ / "en-de");
  serve("en-de", 1);
  {
    const HttpClient only = client("/v1/translate", {{"text", lines_of(900)}, {"beam_size", 16}});
    ASSERT_TRUE(becomes([&] { return at_work() > 800; }));
    EXPECT_GT(at_work(), 500);
  }
  EXPECT_TRUE(becomes([&] { return at_work() == 0; }, kSoon));
  EXPECT_TRUE(becomes([&] { return has_line("attune_requests_cancelled_total{model=\"en-de\"} 1\n"); }));
}

TEST_F(ServerTest, AClientThatGoesAwayWhileItsPromptIsReadIsNoticed) {
  write_language_model_for_prompts(folder_ / "lm");
  serve("lm", 64);
  const Json prompt(std::vector<int32_t>(kPromptTokens, 5));
  Json prompts = Json::array();
  for (int i = 0; i < 100; ++i) prompts.push_back(prompt);
  {
    const HttpClient only = client("/v1/completions", {{"prompt", std::move(prompts)}, {"max_tokens", 4}});
    ASSERT_TRUE(becomes([&] { return model_->load().running > 0; }));
    EXPECT_GT(at_work(), 50);
  }
  EXPECT_TRUE(becomes([&] { return at_work() == 0; }, kSoon));
  EXPECT_TRUE(becomes([&] { return has_line("attune_requests_cancelled_total{model=\"lm\"} 1\n"); }, kSoon));
  EXPECT_EQ(model_->scheduler_state().slots_in_use, 0);
}

// A proxy may send requests until it has seen that the server stops.
TEST_F(ServerTest, WhileItDrainsNewRequestsAreSentElsewhere) {
  write_small_model(folder_ / "en-de");
  serve("en-de", 1);
  std::optional<HttpClient> running(client("/v1/translate", {{"text", lines_of(900)}, {"beam_size", 16}}));
  HttpClient idle(server_->port());
  idle.get("/ready");
  EXPECT_THAT(idle.read_until("\"ready\""), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(becomes([&] { return at_work() > 800; }));
  stop_ = true;
  const auto get = [&](std::string_view path) {
    HttpClient other(server_->port());
    other.get(path);
    return other.read_until("}");
  };
  EXPECT_TRUE(becomes([&] { return get("/ready").starts_with("HTTP/1.1 503"); }));
  EXPECT_THAT(get("/health"), StartsWith("HTTP/1.1 200"));
  idle.post("/v1/translate", R"({"text": "a"})");
  EXPECT_THAT(idle.read_all(), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1"), HasSubstr("close")));
  EXPECT_GT(at_work(), 0) << "or there was nothing to wait for";
  running.reset();
  EXPECT_TRUE(becomes([&] { return refuses(); }, kSoon));
}

// White space stays as it is, so that the answer is as long as the request.
TEST_F(ServerTest, AnAnswerThatIsBeingSentIsSentToItsEnd) {
  write_small_model(folder_ / "en-de");
  config_.http.body_bytes = 32 << 20;
  config_.limits.text_bytes = 1 << 20;
  serve("en-de", 1);
  const Json texts(std::vector<std::string>(12, std::string(1 << 20, ' ')));
  HttpClient slow(server_->port());
  slow.post("/translate", Json{{"q", texts}, {"source", "en"}, {"target", "de"}}.dump(), "Connection: close\r\n");
  pollfd begun{.fd = slow.descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&begun, 1, 60000), 1);
  stop_ = true;
  const std::string answer = read_slowly(slow, std::chrono::milliseconds(80));  // 4 seconds
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200"));
  EXPECT_GT(answer.size(), size_t{12} << 20);
  EXPECT_TRUE(answer.ends_with("]}"));
  EXPECT_TRUE(becomes([&] { return refuses(); }, kSoon));
}

TEST_F(ServerTest, HalfARequestDelaysNoEnd) {
  write_small_model(folder_ / "en-de");
  config_.drain_seconds = 600;
  config_.http.body_seconds = 60;
  serve("en-de", 1);
  HttpClient half(server_->port());
  half.send("POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{\"q\"");
  HttpClient next(server_->port());
  next.get("/health");
  EXPECT_THAT(next.read_until("}"), StartsWith("HTTP/1.1 200")) << "the server, with one thread, has read both";
  const auto begin = std::chrono::steady_clock::now();
  stop_ = true;
  running_.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ServerTest, OneWithoutRequestsEndsAtOnce) {
  write_small_model(folder_ / "en-de");
  config_.drain_seconds = 600;
  serve("en-de", 1);
  HttpClient idle(server_->port());
  idle.get("/health");
  EXPECT_THAT(idle.read_until("}"), StartsWith("HTTP/1.1 200"));
  stop_ = true;
  idle.read_all(static_cast<int>(kSoon));
  EXPECT_TRUE(idle.closed());
  running_.join();
}

// A large model takes a minute to load; this one waits in the log.
TEST_F(ServerTest, ItStopsWhileModelsAreLoadedAgain) {
  write_small_model(folder_ / "en-de");
  std::atomic<bool> loading = false, go_on = false;
  serve("en-de", 1, [&](const std::string& line) {
    if (line.find("\"reload\"") == std::string::npos) return;
    loading = true;
    becomes([&] { return go_on.load(); }, 3 * kSoon);
  });
  write_small_model(folder_ / "en-de", 2);
  reload_ = true;
  EXPECT_TRUE(becomes([&] { return loading.load(); }));
  stop_ = true;
  EXPECT_TRUE(becomes([&] { return refuses(); }, kSoon));
  go_on = true;
  running_.join();
}

TEST_F(ServerTest, WhatIsTooLongHasAnId) {
  write_small_model(folder_ / "en-de");
  serve("en-de", 1);
  HttpClient header(server_->port());
  header.send("GET /health HTTP/1.1\r\nHost: a\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_THAT(header.read_all(), AllOf(StartsWith("HTTP/1.1 431"), HasSubstr("X-Request-Id: ")));
  HttpClient body(server_->port());
  body.post("/translate", std::string(size_t{5} << 20, 'x'), "X-Request-Id: abc\r\n");
  EXPECT_THAT(body.read_all(), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("X-Request-Id: abc\r\n")));
  EXPECT_TRUE(has_line("attune_requests_total{path=\"/translate\",status=\"413\"} 1\n"));
}

}  // namespace
}  // namespace attune::serve
