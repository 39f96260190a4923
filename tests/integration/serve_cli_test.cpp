// attune serve as its users run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/serve/http/http_server.h"
#include "tests/support/http_client.h"
#include "tests/support/run_command.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// One that is free now: a server that has ended leaves it.
int64_t free_port() {
  return serve::HttpServer({.port = 0}, [](const auto&) {}).port();
}

TEST(ServeCli, AnswersAndEndsWithWhatItHasBegun) {
  const TemporaryFolder folder;
  write_small_model(folder / "en-de");
  write_small_language_model(folder / "lm");
  const std::string port = std::to_string(free_port());
  RunningCommand server(attune_command(
      {"serve", (folder / "en-de").string(), "lm=" + (folder / "lm").string(), "--port", port, "--threads", "1"}));
  ASSERT_TRUE(server.wait_for_error_text("serving on http://127.0.0.1:" + port));
  HttpClient client(std::stoll(port));
  client.post("/translate", R"({"q": "The dog sleeps .", "source": "en", "target": "de"})");
  EXPECT_THAT(client.read_until("translatedText"), HasSubstr("200 OK"));
  HttpClient page(std::stoll(port));
  page.get("/");
  const std::string index = page.read_until("</html>");
  EXPECT_THAT(index, HasSubstr("Content-Type: text/html; charset=utf-8"));
  EXPECT_THAT(index, HasSubstr("Content-Security-Policy: default-src 'none'"));
  HttpClient stream(std::stoll(port));
  stream.post("/v1/completions", R"({"prompt": "the ", "max_tokens": 30, "stream": true})");
  EXPECT_THAT(stream.read_until("data: "), HasSubstr("text/event-stream"));
  server.send(SIGTERM);
  EXPECT_THAT(stream.read_all(), HasSubstr("[DONE]"));
  const CommandResult result = server.wait();
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("\"path\":\"/translate\""));
}

class BenchServe : public ::testing::Test {
 protected:
  void SetUp() override {
    write_small_model(folder_ / "en-de");
    write_small_language_model(folder_ / "lm");
    write_file(folder_ / "texts", "The dog sleeps .\nThe cat\n\nA small child reads .\n");
    server_.emplace(attune_command(
        {"serve", (folder_ / "en-de").string(), "lm=" + (folder_ / "lm").string(), "--port", port_, "--threads", "1"}));
    ASSERT_TRUE(server_->wait_for_error_text("serving on"));
  }
  CommandResult load(std::vector<std::string> more) const {
    more.insert(more.begin(), {"bench", "serve", (folder_ / "texts").string(), "--port", port_});
    return run_attune(more);
  }
  Json measured(const std::vector<std::string>& more) const {
    const CommandResult result = load(more);
    EXPECT_EQ(result.status, 0) << result.errors;
    return Json::parse(result.output);
  }

  TemporaryFolder folder_;
  const std::string port_ = std::to_string(free_port());
  std::optional<RunningCommand> server_;
};

TEST_F(BenchServe, CountsAnswersAndTheirTokens) {
  const std::string answers = (folder_ / "answers").string();
  const Json result = measured({"--path", "/v1/translate", "--connections", "3", "--requests", "20", "--answers",
                                answers, "--process", std::to_string(::getpid())});
  EXPECT_EQ(result.at("statuses"), (Json{{"200", 20}}));
  EXPECT_EQ(result.at("failures"), Json::object());
  EXPECT_GT(result.at("latency_s").at("p50"), 0);
  EXPECT_GE(result.at("latency_s").at("p99"), result.at("latency_s").at("p50"));
  EXPECT_EQ(result.at("first_token_s"), nullptr);
  EXPECT_EQ(result.at("server").at("samples").size(), 11u);  // of this process, which is not the server
  EXPECT_EQ(result.at("server").at("samples").back().at("requests"), 20);
  EXPECT_GT(result.at("server").at("memory_bytes_at_end"), 1 << 20);
  EXPECT_GT(result.at("server").at("descriptors_at_end"), 2);
  const CommandResult full = load({"--path", "/v1/translate", "--requests", "2", "--answers", "/dev/full"});
  EXPECT_EQ(full.errors, "attune: cannot write /dev/full: No space left on device\n");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(Json::parse(full.output).at("requests"), 2) << "the figures are printed";
  int64_t tokens = 0;
  const std::vector<std::string> lines = split_lines(read_file(answers));
  ASSERT_EQ(lines.size(), 20u);
  for (const std::string& line : lines) {
    const Json body = Json::parse(Json::parse(line).at("body").get<std::string>());
    for (const Json& sentence : body.at("translations")[0].at("sentences"))
      tokens += static_cast<int64_t>(sentence.at("n_best")[0].at("tokens").size());
  }
  EXPECT_EQ(result.at("output_tokens"), tokens);
}

TEST_F(BenchServe, StreamsArriveAtRandomAndHaveAFirstToken) {
  const std::string fields = R"({"max_tokens": 5, "stream": true, "stream_options": {"include_usage": true}})";
  const Json result = measured({"--path", "/v1/completions", "--fields", fields, "--connections", "2", "--requests",
                                "12", "--rate", "200", "--seed", "7"});
  EXPECT_EQ(result.at("statuses"), (Json{{"200", 12}}));
  EXPECT_EQ(result.at("output_tokens"), 60);
  EXPECT_GT(result.at("first_token_s").at("p50"), 0);
  EXPECT_LE(result.at("first_token_s").at("p50"), result.at("latency_s").at("p50"));
  EXPECT_GT(result.at("seconds"), 0.01);  // 12 arrivals at 200 a second
}

TEST_F(BenchServe, ConnectionsThatTheServerClosedBetweenArrivalsAreOpenedAgain) {
  write_file(folder_ / "serve.toml", "[http]\nheader_seconds = 0.05\nidle_seconds = 0.05\n");
  server_.emplace(attune_command({"serve", "--config", (folder_ / "serve.toml").string(),
                                  "en-de=" + (folder_ / "en-de").string(), "--port", port_, "--threads", "1"}));
  ASSERT_TRUE(server_->wait_for_error_text("serving on"));
  const Json result =
      measured({"--path", "/v1/translate", "--connections", "2", "--requests", "6", "--rate", "5", "--seed", "3"});
  EXPECT_EQ(result.at("statuses"), (Json{{"200", 6}}));
  EXPECT_EQ(result.at("failures"), Json::object());
}

TEST_F(BenchServe, WhatIsRefusedAndWhatCannotBeSentIsTold) {
  const Json refused = measured({"--path", "/v1/embeddings"});
  EXPECT_EQ(refused.at("statuses"), (Json{{"404", 3}}));  // no model of embeddings; an empty line is not sent
  EXPECT_EQ(refused.at("latency_s"), nullptr);
  EXPECT_THAT(load({"--path", "/somewhere"}).errors, HasSubstr("--text-field"));
  EXPECT_THAT(load({"--path", "/translate", "--fields", "[1]"}).errors, HasSubstr("--fields: needs a JSON object"));
  EXPECT_EQ(load({"--path", "/translate", "--host", "localhost"}).errors,
            "attune: --host localhost: needs an IP address, for instance 127.0.0.1\n");
  EXPECT_EQ(measured({"--path", "/\xff", "--text-field", "q"}).at("requests"), 3) << "the path is not UTF-8";
  server_.reset();
  const CommandResult nobody = load({"--path", "/translate"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("127.0.0.1:" + port_));
}

// A server that answers the first requests alone.
class SilentServer {
 public:
  explicit SilentServer(size_t answers, const std::string& host = "127.0.0.1", const std::string& body = "{}")
      : server_({.host = host, .port = 0}, [this, answers, body](const std::shared_ptr<serve::Exchange>& exchange) {
          const std::lock_guard lock(mutex_);
          if (asked_.size() < answers) exchange->respond({.body = body});
          asked_.push_back(exchange);
        }) {}

  /// The "Host" of each request so far.
  std::vector<std::string> hosts() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> hosts;
    for (const auto& exchange : asked_) hosts.emplace_back(exchange->request().header("host"));
    return hosts;
  }
  std::string port() const { return std::to_string(server_.port()); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<serve::Exchange>> asked_;
  serve::HttpServer server_;  // ends first
};

TEST(BenchServeClient, ARequestThatTimesOutIsNotSentAgain) {
  const TemporaryFolder folder;
  write_file(folder / "texts", "one\ntwo\n");
  const SilentServer server(1);
  const CommandResult result = run_attune(
      {"bench", "serve", folder / "texts", "--port", server.port(), "--path", "/translate", "--timeout", "4"});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(Json::parse(result.output).at("statuses"), (Json{{"200", 1}}));
  EXPECT_EQ(Json::parse(result.output).at("failures").size(), 1u) << result.output;
  EXPECT_EQ(server.hosts(), std::vector<std::string>(2, "127.0.0.1:" + server.port()));
}

TEST(BenchServeClient, AnswersInAnotherFormAreFailures) {
  const TemporaryFolder folder;
  write_file(folder / "texts", "one\ntwo\n");
  for (const std::string body : {R"({"translations":[{"text":"Hallo"}]})", R"({"translations":[)"}) {
    const SilentServer server(2, "127.0.0.1", body);
    const CommandResult result =
        run_attune({"bench", "serve", folder / "texts", "--port", server.port(), "--path", "/v1/translate"});
    ASSERT_EQ(result.status, 0) << result.errors;
    const Json measured = Json::parse(result.output);
    EXPECT_EQ(measured.at("statuses"), (Json{{"200", 2}}));
    EXPECT_EQ(measured.at("failures"), (Json{{"the translations are not in the form of /v1/translate", 2}}));
    EXPECT_EQ(measured.at("output_tokens"), 0);
  }
}

TEST(BenchServeClient, TheHostOfAnAddressWithColonsHasBrackets) {
  const TemporaryFolder folder;
  write_file(folder / "texts", "one\n");
  std::optional<SilentServer> server;
  try {
    server.emplace(1, "::1");
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.what();  // a machine without IPv6
  }
  const CommandResult result = run_attune(
      {"bench", "serve", folder / "texts", "--host", "::1", "--port", server->port(), "--path", "/translate"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(server->hosts(), std::vector<std::string>{"[::1]:" + server->port()});
}

TEST(BenchServeClient, AnInterruptedLoadLeavesTheAnswersOfAnotherOne) {
  const TemporaryFolder folder;
  write_file(folder / "texts", "one\ntwo\n");
  write_file(folder / "answers", "old\n");
  const SilentServer server(1);
  RunningCommand load(attune_command({"bench", "serve", folder / "texts", "--port", server.port(), "--path",
                                      "/translate", "--answers", folder / "answers"}));
  EXPECT_TRUE(becomes([&] { return server.hosts().size() == 2; }));
  EXPECT_EQ(read_file(folder / "answers"), "old\n");
  load.send(SIGTERM);
  const CommandResult result = load.wait();
  EXPECT_EQ(result.status, 128 + SIGTERM) << result.errors;
  EXPECT_EQ(read_file(folder / "answers"), "old\n");
  using Entries = std::filesystem::directory_iterator;
  EXPECT_EQ(std::distance(Entries(folder.path()), Entries()), 2) << "no other file is left";
}

TEST(ServeCli, WhatCannotBeServedIsNamed) {
  const auto errors = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"serve", "--port", "0"});
    const CommandResult result = run_attune(arguments);
    EXPECT_EQ(result.status, 1);
    return result.errors;
  };
  EXPECT_THAT(errors({}), HasSubstr("no model is named"));
  EXPECT_THAT(errors({"a=/no/such/folder"}), HasSubstr("/no/such/folder"));
  EXPECT_THAT(errors({"a=/x", "--host", "0.0.0.0"}), HasSubstr("--api-keys"));
  EXPECT_THAT(errors({"--config", "/no/serve.toml"}), HasSubstr("/no/serve.toml"));
}

}  // namespace
}  // namespace attune
