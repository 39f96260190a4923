// The page: what is served, and that it asks for nothing that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "attune/serve/routes.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/paths.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The parts of the page: the routes that its handler answers.
std::vector<std::string> page_paths() {
  std::vector<std::string> paths;
  for (const Route& route : routes())
    if (route.handle == answer_page) paths.emplace_back(route.path);
  return paths;
}

HttpResponse head_of(TestService& t, const std::string& path) {
  const auto exchange = t.send({.method = "GET", .path = path});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (auto out = exchange->take(); out.head) return *out.head;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {.status = 0};
}

std::string header(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return "";
}

TEST(Page, IsServedWithoutAKeyAndLoadsNothingFromElsewhere) {
  TemporaryFolder folder;
  write_file(folder / "keys.toml", "[alice]\nkey = \"0123456789abcdef\"\n");
  ServeConfig config;
  config.security.api_keys = (folder / "keys.toml").string();
  TestService t(config, false);
  ASSERT_GT(page_paths().size(), 3u);
  for (const std::string& path : page_paths()) {
    const HttpResponse response = head_of(t, path);
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_FALSE(response.body.empty()) << path;
    EXPECT_THAT(header(response, "Content-Security-Policy"), StartsWith("default-src 'none'; script-src 'self';"));
    EXPECT_THAT(header(response, "Content-Security-Policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_THAT(response.body, Not(::testing::ContainsRegex("(src|href|from|import)[ =(]*[\"']https?:"))) << path;
  }
  EXPECT_EQ(head_of(t, "/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(head_of(t, "/page/page.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(head_of(t, "/page/page.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(head_of(t, "/page/icon.svg").content_type, "image/svg+xml");
}

TEST(Page, EveryFileIsARoute) {
  const std::vector<std::string> paths = page_paths();
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "attune/serve/page")) {
    const std::string name = entry.path().filename().string();
    EXPECT_THAT(paths, ::testing::Contains(name == "index.html" ? "/" : "/page/" + name));
  }
}

TEST(Page, NamesOnlyPathsThatAreServed) {
  TestService t({}, false);
  std::set<std::string> served, named;
  for (const Route& route : routes()) served.emplace(route.path);
  const std::regex path(R"(["'](/[a-z0-9_./-]*)["'])");
  for (const std::string& page : page_paths()) {
    const std::string text = head_of(t, page).body;
    for (auto it = std::sregex_iterator(text.begin(), text.end(), path); it != std::sregex_iterator(); ++it)
      named.insert((*it)[1]);
  }
  EXPECT_GT(named.size(), 8u);
  for (const std::string& one : named) EXPECT_TRUE(served.contains(one)) << one;
  for (const char* one : {"/v1/translate", "/v1/attention", "/v1/completions", "/predict", "/metrics", "/info"})
    EXPECT_TRUE(named.contains(one)) << one;
}

// What a model writes goes in as text.
TEST(Page, WritesNoMarkup) {
  TestService t({}, false);
  for (const std::string& path : page_paths())
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage"})
      EXPECT_THAT(head_of(t, path).body, Not(HasSubstr(way))) << path;
}

TEST(Page, InfoSaysWhatItNeedsOfTheModels) {
  TestService t;
  for (const Json& model : t.get("/info").json()["models"]) {
    if (model["model_id"] == "en-de") {
      EXPECT_EQ(model["source_languages"], Json::array({"en"}));
      EXPECT_EQ(model["target_languages"], Json::array({"de"}));
    }
    if (model["model_id"] == "lm") EXPECT_EQ(model["chat"], false);
  }
  EXPECT_THAT(t.get("/metrics").body, HasSubstr("\nprocess_resident_memory_bytes "));
}

}  // namespace
}  // namespace attune::serve
