#include "attune/inference/classifier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "attune/autograd/graph.h"
#include "attune/base/random.h"
#include "attune/data/labelled_corpus.h"
#include "attune/io/model_folder.h"
#include "attune/models/build.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Tokenizer> words() {
  std::vector<std::string> list;
  for (int i = 0; i < 30; ++i) list.push_back(fmt::format("w{}", i));
  return std::make_shared<WhitespaceTokenizer>(list);
}

std::unique_ptr<EncoderClassifier> random_classifier(const PositionKind& positions = SinusoidalPositions{}) {
  TransformerConfig c;
  c.architecture = Architecture::encoder_classifier;
  c.vocab = words()->vocab_size();
  c.d_model = 32;
  c.heads = 4;
  c.layers = 2;
  c.d_ff = 48;
  c.labels = {"no", "maybe", "yes", "who knows"};
  c.positions = positions;
  auto model = build_encoder_classifier(c);
  Random random(4);
  for (const NamedParameter& p : named_parameters(*model)) {
    for (float& value : p.tensor->values<float>()) value += static_cast<float>(0.3 * random.normal());
  }
  return model;
}

std::vector<std::string> random_texts(int64_t count) {
  Random random(8);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    for (uint64_t n = random.below(20); n > 0; --n) text += fmt::format("w{} ", random.below(30));
    texts.push_back(text);
  }
  return texts;
}

TEST(Classifier, ProbabilitiesAreTheSoftmaxOfTheLogits) {
  std::shared_ptr<EncoderClassifier> model = random_classifier();
  const Classifier classifier({random_classifier(), words()});
  const std::vector<LabelledText> text = {{"", "w3 w7 w1"}};
  const auto corpus = encode_labelled(text, classifier.labels(), *words(), {.needs_label = false});
  const std::vector<int32_t>& ids = corpus.examples.at(0).tokens;  // as in training
  const NoGrad no_grad;
  const Tensor logits = (*model)(pack_tokens(ids, {0, static_cast<int32_t>(ids.size())}));
  double sum = 0;
  for (const float x : logits.values<float>()) sum += std::exp(static_cast<double>(x));

  const Classification result = classifier.classify(std::vector<std::string>{"w3 w7 w1"}).at(0);
  ASSERT_EQ(result.labels.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const LabelProbability& l = result.labels[i];
    const double logit = logits.values<float>()[static_cast<size_t>(l.label)];
    EXPECT_NEAR(l.probability, std::exp(logit) / sum, 1e-6);
    if (i > 0) {
      EXPECT_LE(l.probability, result.labels[i - 1].probability);
    }
  }
}

TEST(Classifier, TheBatchChangesNothing) {
  const Classifier classifier({random_classifier(), words()});
  const std::vector<std::string> texts = random_texts(50);
  const std::vector<Classification> together = classifier.classify(texts);
  std::vector<int64_t> done;
  ClassifyOptions options{.batch_texts = 7, .batch_tokens = 40};
  options.progress = [&](int64_t count, int64_t total) {
    done.push_back(count);
    EXPECT_EQ(total, 50);
  };
  const std::vector<Classification> apart = classifier.classify(texts, options);
  EXPECT_GT(done.size(), 7u);
  EXPECT_EQ(done.back(), 50);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Classification alone = classifier.classify(std::span(&texts[i], 1)).at(0);
    for (size_t l = 0; l < 4; ++l) {
      EXPECT_EQ(together[i].labels[l].label, alone.labels[l].label) << i;
      EXPECT_NEAR(together[i].labels[l].probability, alone.labels[l].probability, 1e-6);
      EXPECT_NEAR(apart[i].labels[l].probability, alone.labels[l].probability, 1e-6);
    }
  }
}

TEST(Classifier, TopKeepsTheLikeliest) {
  const Classifier classifier({random_classifier(), words()});
  for (const std::string& text : random_texts(5)) {
    const Classification all = classifier.classify(text);
    const Classification two = classifier.classify(text, {.top = 2});
    ASSERT_EQ(two.labels.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(two.labels[i].label, all.labels[i].label);
      EXPECT_EQ(two.labels[i].probability, all.labels[i].probability);
    }
    EXPECT_EQ(classifier.classify(text, {.top = 9}).labels.size(), 4u);
  }
  EXPECT_THAT(message_of<ConfigError>([&] { classifier.classify("w1", {.top = -1}); }), HasSubstr("top = -1"));
}

TEST(Classifier, LongTextsAreCut) {
  const Classifier classifier({random_classifier(LearnedPositions{.max_length = 6}), words()});
  EXPECT_EQ(classifier.max_tokens(), 6);
  const auto results = classifier.classify(std::vector<std::string>{"w1 w2 w3 w4 w5 w6 w7", "w1 w2 w3 w4", ""});
  EXPECT_EQ(results[0].cut_tokens, 3);
  EXPECT_EQ(results[1].cut_tokens, 0);
  EXPECT_EQ(results[2].cut_tokens, 0);
  EXPECT_EQ(results[0].labels[0].label, results[1].labels[0].label);
  EXPECT_NEAR(results[0].labels[0].probability, results[1].labels[0].probability, 1e-6);

  const Classifier trained_short({random_classifier(), words(), 5});
  EXPECT_EQ(trained_short.max_tokens(), 5);
  const std::vector<std::string> text = {"w1 w2 w3 w4 w5"};
  EXPECT_EQ(trained_short.classify(text).at(0).cut_tokens, 2);
  EXPECT_EQ(trained_short.classify(text, {.max_tokens = 6}).at(0).cut_tokens, 1);
}

TEST(Classifier, RefusesWhatDoesNotFit) {
  const Classifier classifier({random_classifier(), words()});
  const std::vector<std::string> texts = {"w1"};
  EXPECT_THAT(message_of<ConfigError>([&] { classifier.classify(texts, {.max_tokens = 1}); }),
              HasSubstr("max_tokens = 1"));
  EXPECT_THAT(message_of<ConfigError>([&] { classifier.classify(texts, {.batch_texts = 0}); }),
              HasSubstr("batch_texts = 0"));
  const auto few = std::make_shared<WhitespaceTokenizer>(std::vector<std::string>{"w1"});
  EXPECT_THAT(message_of<ConfigError>([&] { Classifier({random_classifier(), few}); }), HasSubstr("vocab = 34"));
  EXPECT_TRUE(classifier.classify(std::vector<std::string>{}).empty());

  auto broken = random_classifier();
  for (const NamedParameter& p : named_parameters(*broken)) {
    if (p.name == "head.bias") p.tensor->values<float>()[1] = std::numeric_limits<float>::infinity();
  }
  const Classifier no_numbers({std::move(broken), words()});
  EXPECT_THAT(message_of<NumericError>([&] { no_numbers.classify(texts); }),
              HasSubstr("text 1: a label's logit is inf"));
}

TEST(Classifier, ATextWithoutTokensIsNamedOrSkipped) {
  const Classifier classifier({random_classifier(), words()});
  const std::vector<Encoding> texts = {classifier.encode("w1"), Encoding{}};
  EXPECT_EQ(message_of<DataError>([&] { classifier.classify_encoded(texts); }), "text 2: has no tokens");
  EXPECT_EQ(message_of<DataError>([&] { classifier.logits(texts); }), "text 2: has no tokens");
  std::vector<std::string> skipped;
  ClassifyOptions options;
  options.skip = [&](size_t text, const std::string& what) { skipped.push_back(std::to_string(text) + what); };
  const std::vector<Classification> found = classifier.classify_encoded(texts, options);
  EXPECT_EQ(skipped, std::vector<std::string>{"1has no tokens"});
  EXPECT_FALSE(found[0].labels.empty());
  EXPECT_TRUE(found[1].labels.empty());
  for (const std::vector<Encoding>& some : {texts, std::vector<Encoding>(1)}) {
    int64_t last = 0;
    options.progress = [&](int64_t done, int64_t) { last = done; };
    classifier.classify_encoded(some, options);
    EXPECT_EQ(last, std::ssize(some));
  }
}

TEST(Classifier, ManyThreadsMayShareOne) {
  constexpr size_t kThreads = 8;
  const Classifier classifier({random_classifier(), words()});
  const std::vector<std::string> texts = random_texts(20);
  const std::vector<Classification> alone = classifier.classify(texts);
  std::vector<std::vector<Classification>> together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back(
          [&, t] { together[t] = classifier.classify(texts, {.batch_texts = static_cast<int64_t>(1 + t)}); });
    }
  }
  for (const std::vector<Classification>& found : together) {
    for (size_t i = 0; i < texts.size(); ++i) {
      for (size_t l = 0; l < alone[i].labels.size(); ++l) {
        EXPECT_EQ(found[i].labels[l].label, alone[i].labels[l].label);
        EXPECT_EQ(found[i].labels[l].probability, alone[i].labels[l].probability);
      }
    }
  }
}

TEST(Classifier, TakesTextAsItComes) {
  const Classifier classifier({random_classifier(), words()});
  const double probability = classifier.classify("w1 w2").labels[0].probability;
  const std::string text = "w1 w2";
  EXPECT_EQ(classifier.classify(text).labels[0].probability, probability);
  EXPECT_EQ(classifier.classify({"w1 w2"}).at(0).labels[0].probability, probability);
  EXPECT_EQ(classifier.classify({"w3", "w1 w2"}).at(1).labels[0].probability, probability);
  EXPECT_EQ(message_of<DataError>([&] { classifier.classify({"w1", "\xff"}); }), "text 2: is not valid UTF-8");
}

}  // namespace
}  // namespace attune
