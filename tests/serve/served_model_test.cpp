#include "attune/serve/served_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

// Below 16 sentences a batch has one lane, whatever threads there are. What has a place beside those at work stands in
// the scheduler's queue, where clients do not take turns.
TEST(ServedModel, HasAsManyPlacesAsItsLanes) {
  constexpr int64_t kBatch = 4;
  ServeConfig config;
  config.models["en-de"].batch = kBatch;
  config.models["en-de"].threads = 2;
  TestService t(config);
  const auto model = t.service->models().find("en-de");
  std::string text;
  for (const std::string& sentence : small_text(100)) text += sentence + "\n";
  const auto exchange = t.send(post_request("/v1/translate", Json{{"text", text}}.dump()));
  int64_t most = 0;
  const auto is_done = [&] {
    most = std::max(most, model->load().running);
    return most > 0 && model->load().waiting == 0;
  };
  EXPECT_TRUE(becomes(is_done, 60));
  EXPECT_LE(most, kBatch);
  EXPECT_EQ(wait_for_answer(*exchange).status, 200);
}

}  // namespace
}  // namespace attune::serve
