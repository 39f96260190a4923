// attune serve as its users run it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "attune/serve/http/http_server.h"
#include "tests/support/http_client.h"
#include "tests/support/run_command.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

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
