// Folders of hub_models() with "pairs" in expected.json: two texts have the tokens, the types and the scores that
// tokenizers and transformers give them.

#include <gtest/gtest.h>

#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/text/tokenizer.h"
#include "tests/hub/hub_model.h"

namespace attune {
namespace {

bool has_pairs(const std::string& name) {
  return hub_json(name, "expected.json").contains("pairs");
}

class HubPairs : public testing::TestWithParam<std::string> {
 protected:
  using Ids = std::vector<int32_t>;
  std::filesystem::path folder() const { return hub_models() / GetParam(); }
  Json pairs() const { return hub_json(GetParam(), "expected.json").at("pairs"); }
  static TextPair texts_of(const Json& pair) {
    return {pair.at("first").get<std::string>(), pair.at("second").get<std::string>()};
  }
  static int64_t max_tokens(const Json& pair) {
    return pair.at("max_tokens").is_null() ? 1 << 20 : pair.at("max_tokens").get<int64_t>();
  }
};

INSTANTIATE_TEST_SUITE_P(Folder, HubPairs, testing::ValuesIn(hub_models_with(has_pairs)), hub_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HubPairs);

TEST_P(HubPairs, TokensAndTypesEqualThoseOfTokenizers) {
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder());
  for (const Json& pair : pairs()) {
    const Encoding found = tokenizer->encode_pair(texts_of(pair).first, texts_of(pair).second,
                                                  {.truncation = Truncation{.max_length = max_tokens(pair)}});
    EXPECT_EQ(found.ids, pair.at("ids").get<Ids>()) << pair;
    EXPECT_EQ(found.type_ids, pair.at("type_ids").get<Ids>()) << pair;
  }
}

TEST_P(HubPairs, ScoresEqualThoseOfTransformers) {
  const Classifier classifier = Classifier::load(folder());
  for (const Json& pair : pairs()) {
    const TextPair texts = texts_of(pair);
    const auto expected = pair.at("scores").get<std::vector<double>>();
    const Classification found =
        classifier.classify(std::span(&texts, 1), {.max_tokens = std::min<int64_t>(max_tokens(pair), 4096)}).at(0);
    ASSERT_EQ(found.labels.size(), expected.size());
    for (const LabelProbability& label : found.labels)
      EXPECT_NEAR(label.probability, expected.at(static_cast<size_t>(label.label)), 1e-4) << pair;
  }
}

// Alone, and with other pairs of other lengths.
TEST_P(HubPairs, ABatchDoesNotChangeAnAnswer) {
  const Classifier classifier = Classifier::load(folder());
  std::vector<TextPair> texts;
  for (const Json& pair : pairs()) texts.push_back(texts_of(pair));
  const std::vector<Classification> together = classifier.classify(texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Classification alone = classifier.classify(std::span(&texts[i], 1)).at(0);
    EXPECT_EQ(alone.labels.front().probability, together[i].labels.front().probability) << i;
  }
}

}  // namespace
}  // namespace attune
