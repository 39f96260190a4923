#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

// Source word and target word of each target token with the token that has the largest mean weight.
std::set<std::pair<int, int>> aligned_words(const Json& attention) {
  const Json& source = attention["source"]["word_of_token"];
  const Json& target = attention["target"]["word_of_token"];
  std::set<std::pair<int, int>> pairs;
  for (size_t t = 0; t < target.size(); ++t) {
    std::vector<double> mean(source.size());
    for (const Json& head : attention["heads"])
      for (size_t s = 0; s < mean.size(); ++s) mean[s] += head[t][s].get<double>();
    const auto best = static_cast<size_t>(std::max_element(mean.begin(), mean.end()) - mean.begin());
    if (source[best] >= 0 && target[t] >= 0) pairs.emplace(source[best], target[t]);
  }
  return pairs;
}

TEST(AttentionRoute, AgreesWithTheAlignmentsOfTheTranslation) {
  TestService t;
  for (const std::string& sentence : small_text(3)) {
    const Json translated = t.post("/v1/translate", {{"text", sentence}, {"n_best", 2}, {"alignments", true}}).json();
    for (const Json& candidate : translated["translations"][0]["sentences"][0]["n_best"]) {
      const Answer answer = t.post("/v1/attention", {{"text", sentence}, {"translation", candidate["tokens"]}});
      ASSERT_EQ(answer.status, 200) << answer.body;
      const Json attention = answer.json();
      EXPECT_EQ(attention["layer"], 2);
      EXPECT_EQ(attention["layers"], 2);
      EXPECT_EQ(attention["target"]["tokens"].size(), candidate["tokens"].size() + 1);
      EXPECT_EQ(attention["target"]["tokens"].back(), "</s>");
      EXPECT_EQ(attention["target"]["word_of_token"].back(), -1);
      std::string words;
      for (const Json& word : attention["target"]["words"])
        words += (words.empty() ? "" : " ") + word.get<std::string>();
      EXPECT_EQ(words, candidate["text"].get<std::string>());
      std::set<std::pair<int, int>> expected;
      for (const Json& pair : candidate["alignment"]) expected.emplace(pair[0], pair[1]);
      EXPECT_EQ(aligned_words(attention), expected);
    }
  }
}

TEST(AttentionRoute, HasEveryHeadAndItsRowsSumToOne) {
  TestService t;
  const Json first =
      t.post("/v1/attention", {{"model", "en-de"}, {"text", "the old dog"}, {"translation", "der Hund"}, {"layer", 1}})
          .json();
  const size_t sources = first["source"]["tokens"].size(), targets = first["target"]["tokens"].size();
  ASSERT_EQ(first["heads"].size(), 4u);
  for (const Json& head : first["heads"]) {
    ASSERT_EQ(head.size(), targets);
    for (const Json& row : head) {
      ASSERT_EQ(row.size(), sources);
      double sum = 0;
      for (const Json& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-3);
    }
  }
  const Json second = t.post("/v1/attention",
                             {{"source", "en"}, {"target", "de"}, {"text", "the old dog"}, {"translation", "der Hund"}})
                          .json();
  EXPECT_EQ(second["layer"], 2);
  EXPECT_NE(second["heads"], first["heads"]);
}

TEST(AttentionRoute, WrongRequestsAreNamed) {
  ServeConfig config;
  config.limits.attention_tokens = 20;
  TestService t(config);
  const auto refused = [&](const std::string& field, const Json& change, int status = 400) {
    Json body = {{"text", "the old dog"}, {"translation", "der Hund"}};
    body.update(change);
    const Answer answer = t.post("/v1/attention", body);
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(field));
  };
  refused("layer", {{"layer", 0}});
  refused("layer", {{"layer", 3}});
  refused("text", {{"text", " "}});
  refused("text", {{"text", nullptr}});
  refused("translation", {{"translation", nullptr}});
  refused("no token of the model", {{"translation", {"no such piece"}}});
  refused("heads", {{"heads", 1}});
  refused("lm", {{"model", "lm"}});
  std::string longer = "dog";
  for (int i = 0; i < 20; ++i) longer += " dog";
  refused("at most 20", {{"text", longer}}, 413);
  refused("at most 20", {{"translation", longer}}, 413);
}

TEST(AttentionRoute, ALateRequestIsNotComputed) {
  TestService t;
  HttpRequest request =
      post_request("/v1/attention", Json{{"text", "the old dog"}, {"translation", "der Hund"}}.dump());
  request.headers.emplace_back("x-timeout", "0.000001");
  EXPECT_EQ(t.ask(request).status, 504);
}

TEST(AttentionRoute, RequestsOfManyClientsEndWithTheService) {
  TestService t;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  const Json body = {{"text", "the old dog"}, {"translation", "der Hund"}};
  for (int i = 0; i < 50; ++i) exchanges.push_back(t.send(post_request("/v1/attention", body.dump())));
  exchanges.front()->abandon();
  t.service->stop();
  for (size_t i = 1; i < exchanges.size(); ++i) {
    const int status = wait_for_answer(*exchanges[i]).status;
    EXPECT_TRUE(status == 200 || status == 503) << status;
  }
}

}  // namespace
}  // namespace attune::serve
