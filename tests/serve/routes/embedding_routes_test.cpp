// /v1/embeddings and /embed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/inference/embedder.h"
#include "attune/text/tokenizer.h"
#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

class EmbeddingRoutes : public ::testing::Test {
 protected:
  EmbeddingRoutes() {
    write_small_embedder(folder_ / "embed");
    ServeConfig config;
    config.models["embed"].folder = (folder_ / "embed").string();
    service_.emplace(config);
  }
  Answer embeddings(const Json& input) { return service_->post("/v1/embeddings", {{"input", input}}); }

  TemporaryFolder folder_;
  std::optional<TestService> service_;
};

TEST_F(EmbeddingRoutes, TokenIdsAreTheTextThatTheyAre) {
  const std::vector<std::string> texts = {"a small cat", "dogs bark"};
  const Embedder embedder = Embedder::load(folder_ / "embed");
  const Answer expected = embeddings(texts);
  ASSERT_EQ(expected.status, 200) << expected.body;
  std::vector<std::vector<int32_t>> plain, framed;
  for (const std::string& text : texts) {
    plain.push_back(embedder.tokenizer().encode(text));
    framed.push_back(embedder.tokenizer().encode_for_model(text).ids);
  }
  EXPECT_NE(plain, framed) << "or the test says nothing";
  EXPECT_EQ(embeddings(plain).json(), expected.json());
  EXPECT_EQ(embeddings(framed).json(), expected.json());
  EXPECT_EQ(embeddings(plain[0]).json()["data"][0], expected.json()["data"][0]);
  EXPECT_EQ(embeddings(plain[0]).json()["data"].size(), 1u);
}

// A folder that normalises: /embed does as it is asked, /v1/embeddings always normalises.
TEST_F(EmbeddingRoutes, VectorsHaveTheLengthThatIsAskedFor) {
  write_embedding_settings(folder_ / "embed", {.normalize = true}, 32);
  ServeConfig config;
  config.models["embed"].folder = (folder_ / "embed").string();
  service_.emplace(config);
  const Embedder embedder = Embedder::load(folder_ / "embed");
  const std::vector<float> plain = embedder.embed("a small cat", {.normalize = false}),
                           unit = embedder.embed("a small cat");
  ASSERT_NE(plain, unit);
  const auto embedded = [&](bool normal) {
    return service_->post("/embed", {{"inputs", "a small cat"}, {"normalize", normal}})
        .json()[0]
        .get<std::vector<float>>();
  };
  EXPECT_EQ(embedded(false), plain);
  EXPECT_EQ(embedded(true), unit);
  EXPECT_EQ(embeddings("a small cat").json()["data"][0]["embedding"].get<std::vector<float>>(), unit);
}

TEST_F(EmbeddingRoutes, IdsThatTheModelDoesNotHaveAreRefused) {
  for (const char* input : {"[-1]", "[400]", "[18446744073709551615]", "[1.5]", "[[]]", "[[1], \"a\"]",
                            "[[1], [\"a\"]]", "[1, \"a\"]", "[[1], [[2]]]", "[null]", "[]", "{}", "7"}) {
    const Answer answer = embeddings(Json::parse(input));
    EXPECT_EQ(answer.status, 400) << input;
    EXPECT_EQ(answer.json()["error"]["param"], "input") << input;
  }
}

TEST_F(EmbeddingRoutes, ATextIsCutOrRefused) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "cat ";
  const auto embed = [&](const Json& more) {
    Json body = {{"inputs", {"a cat", text}}};
    body.update(more);
    return service_->post("/embed", body);
  };
  EXPECT_EQ(embed(Json::object()).status, 200);
  EXPECT_EQ(embed({{"truncate", true}, {"truncation_direction", "Right"}}).status, 200);
  const Answer refused = embed({{"truncate", false}});
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.json()["error_type"], "Validation");
  EXPECT_THAT(refused.json()["error"].get<std::string>(), HasSubstr("inputs: text 2 has "));
  EXPECT_EQ(service_->post("/embed", {{"inputs", "a cat"}, {"truncate", false}}).status, 200);
  const Answer left = embed({{"truncation_direction", "Left"}});
  EXPECT_EQ(left.status, 422);
  EXPECT_THAT(left.json()["error"].get<std::string>(), HasSubstr("truncation_direction"));
}

TEST_F(EmbeddingRoutes, TokensOfARequestAreLimited) {
  ServeConfig config;
  config.models["embed"].folder = (folder_ / "embed").string();
  config.limits.tokens = 20;
  service_.emplace(config);
  const auto tokenize = [&](const std::vector<std::string>& texts) {
    return service_->post("/tokenize", {{"inputs", texts}, {"model", "embed"}});
  };
  EXPECT_EQ(tokenize({"a cat"}).status, 200);
  const Answer refused = tokenize(std::vector<std::string>(30, "a cat"));
  EXPECT_EQ(refused.status, 413);
  EXPECT_THAT(refused.body, HasSubstr("inputs: has "));
  EXPECT_THAT(refused.body, HasSubstr(" tokens, at most 20 are accepted"));
  const auto embed = [&](int ids) {
    const std::vector<int32_t> unknown(static_cast<size_t>(ids), -1);
    return service_->post("/v1/embeddings", {{"input", unknown}, {"model", "embed"}});
  };
  EXPECT_EQ(embed(20).status, 400) << "of the id";
  EXPECT_EQ(embed(21).status, 413) << "before the ids are read";
}

}  // namespace
}  // namespace attune::serve
