// What a running server tells and is told: metrics, and folders that are loaded again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <sstream>

#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

TEST(Service, AChangedFolderIsLoadedBesideTheOldOne) {
  TestService t;
  const Json body = {{"q", small_text(1).front()}, {"source", "en"}, {"target", "de"}};
  const Json before = t.post("/translate", body).json();
  write_small_model(t.folder("en-de"), 2);
  EXPECT_EQ(t.post("/translate", body).json(), before);
  t.service->reload();
  EXPECT_NE(t.post("/translate", body).json(), before);
  t.service->models().free_replaced();
  std::filesystem::remove(t.folder("en-de") / "config.json");
  t.service->reload();
  EXPECT_EQ(t.post("/translate", body).status, 200);
  EXPECT_THAT(t.log(), ::testing::Contains(HasSubstr("stays as it is")));
}

TEST(Service, AServerThatStopsLoadsNothingAgain) {
  TestService t;
  write_small_model(t.folder("en-de"), 2);
  t.service->drain();
  t.service->reload();
  EXPECT_THAT(t.log(), ::testing::Not(::testing::Contains(HasSubstr("loaded again"))));
}

// Both threads that read requests are busy, as they are with long texts.
TEST(Service, WhatReadsCountersDoesNotWaitForOtherRequests) {
  std::atomic<int> busy = 0;
  std::atomic<bool> go_on = false;
  TestService t;
  for (int i = 0; i < 2; ++i)
    t.service->handle(std::make_shared<Exchange>(HttpRequest{.method = "GET", .path = "/v1/models"}, [&] {
      ++busy;
      becomes([&] { return go_on.load(); }, 60);
    }));
  EXPECT_TRUE(becomes([&] { return busy == 2; }));
  for (const char* path : {"/health", "/ready", "/metrics"})
    EXPECT_TRUE(t.send({.method = "GET", .path = path})->take().head.has_value()) << path;
  go_on = true;
}

// As promtool checks them: help and one type for each name, counters that end with _total and nothing else that does.
TEST(Service, MetricsAreThereFromTheStart) {
  TestService t;
  const std::string text = t.get("/metrics").body;
  for (const char* line :
       {"attune_requests_refused_total{model=\"lm\"} 0\n", "attune_requests_cancelled_total{model=\"en-de\"} 0\n",
        "attune_tokens_out_total{model=\"topics\"} 0\n", "attune_request_seconds_count{model=\"topics\"} 0\n",
        "attune_time_to_first_token_seconds_bucket{model=\"lm\",le=\"+Inf\"} 0\n",
        "attune_time_per_token_seconds_sum{model=\"lm\"} 0\n",
        "# HELP attune_cache_slots_in_use Tokens that the caches hold"})
    EXPECT_THAT(text, HasSubstr(line));
  t.wait_until_idle();
  const std::string later = t.get("/metrics").body;
  std::map<std::string, std::string> types;
  std::string helped;
  std::istringstream lines(later);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, kind, name, type;
    if (!line.starts_with("#")) continue;
    words >> hash >> kind >> name >> type;
    if (kind == "HELP") {
      helped = name;
      continue;
    }
    EXPECT_EQ(helped, name) << "its help comes before its type";
    EXPECT_TRUE(types.emplace(name, type).second) << name << " has two types";
    EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
    EXPECT_EQ(type == "histogram", name.ends_with("_seconds")) << name;
  }
  EXPECT_EQ(types.size(), 16u);
}

// Files of a subfolder, as sentence-transformers has them, and of the model that an adapter is for.
TEST(Service, AReloadSeesAllFilesOfAModel) {
  TestService t;
  const auto reloads = [&](const std::string& line) {
    const auto count = [&] {
      const std::vector<std::string> log = t.log();
      return std::ranges::count_if(log, [&](const std::string& l) { return l.find(line) != std::string::npos; });
    };
    const auto before = count();
    t.service->reload();
    return count() - before;
  };
  EXPECT_EQ(reloads("lm: loaded again"), 0);
  std::filesystem::create_directory(t.folder("lm") / "1_Pooling");
  write_file(t.folder("lm") / "1_Pooling" / "config.json", "{}");
  EXPECT_EQ(reloads("lm: loaded again"), 1);
  EXPECT_EQ(reloads("lm: loaded again"), 0);
  write_file(t.folder("lm") / "adapter_config.json", R"({"base_model_name_or_path": "../topics"})");
  EXPECT_EQ(reloads("lm: loaded again"), 1);
  write_file(t.folder("topics") / "README.md", "changed");
  EXPECT_EQ(reloads("lm: loaded again"), 1);
}

TEST(Service, MetricsCountWhatHappens) {
  TestService t;
  t.post("/v1/completions", {{"model", "lm"}, {"prompt", "a"}, {"max_tokens", 5}});
  t.get("/no/such/path");
  t.wait_until_idle();
  const std::string text = t.get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("attune_requests_total{path=\"/v1/completions\",status=\"200\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_requests_total{path=\"other\",status=\"404\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("attune_tokens_out_total{model=\"lm\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("attune_time_to_first_token_seconds_count{model=\"lm\"} 1\n"));
}

}  // namespace
}  // namespace attune::serve
