// The page: what is served, and that it asks for nothing that is not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "attune/serve/page_files.h"
#include "attune/serve/routes/routes.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/paths.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

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
  for (const PageFile& file : page_files()) {
    const std::string path = file.path;
    const HttpResponse response = head_of(t, path);
    EXPECT_EQ(response.content_type, std::string(file.type) + "; charset=utf-8");
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_FALSE(response.body.empty()) << path;
    EXPECT_THAT(header(response, "Content-Security-Policy"), StartsWith("default-src 'none'; script-src 'self';"));
    EXPECT_THAT(header(response, "Content-Security-Policy"), Not(HasSubstr("unsafe")));
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_THAT(response.body, Not(::testing::ContainsRegex("(src|href|from|import)[ =(]*[\"']https?:"))) << path;
  }
}

TEST(Page, EveryFileIsARoute) {
  std::vector<std::string> paths, routed;
  for (const PageFile& file : page_files()) paths.emplace_back(file.path);
  for (const Route& route : routes())
    if (route.handle == answer_page) routed.emplace_back(route.path);
  EXPECT_EQ(paths, routed);
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "attune/serve/page")) {
    const std::string name = entry.path().filename().string();
    EXPECT_THAT(paths, ::testing::Contains(name == "index.html" ? "/" : "/page/" + name));
  }
}

TEST(Page, NamesOnlyPathsThatAreServed) {
  std::set<std::string> served, named;
  for (const Route& route : routes()) served.emplace(route.path);
  const std::regex path(R"(["'](/[a-z0-9_./-]*)["'])");
  for (const PageFile& file : page_files()) {
    const std::string text(file.content());
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
  for (const PageFile& file : page_files())
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "localStorage"})
      EXPECT_THAT(std::string(file.content()), Not(HasSubstr(way))) << file.path;
}

TEST(Page, InfoSaysWhatItNeedsOfTheModels) {
  TestService t;
  const Json info = t.get("/info").json();
  for (const Json& model : info["models"]) {
    if (model["model_id"] == "en-de") {
      EXPECT_EQ(model["source_languages"], Json::array({"en"}));
      EXPECT_EQ(model["target_languages"], Json::array({"de"}));
    }
    if (model["model_id"] == "lm") {
      EXPECT_EQ(model["chat"], false);
    }
  }
  EXPECT_THAT(t.get("/metrics").body, HasSubstr("\nprocess_resident_memory_bytes "));
}

}  // namespace
}  // namespace attune::serve
