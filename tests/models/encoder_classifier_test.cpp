#include "attune/models/encoder_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/nn/dropout.h"
#include "attune/tensor/host_view.h"
#include "tests/models/small_config.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TransformerConfig regression_config() {
  TransformerConfig config = small_config(Architecture::encoder_classifier);
  config.label_scores = LabelScores::none;
  config.labels = config.default_labels();
  return config;
}

TEST(EncoderClassifier, TheLossOfARegressionIsTheSquaredErrorOfItsLogits) {
  const auto model = build_encoder_classifier(regression_config(), 3);
  const PackedTokens tokens = random_tokens({5, 1, 9}, 1);
  const std::vector<float> right = {2, -1, 0.5F};
  const Tensor logits = (*model)(tokens).detach();
  EXPECT_EQ(logits.shape().text(), "[3, 1]");
  const HostView found(logits);
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) sum += (found.as<float>()[i] - right[i]) * (found.as<float>()[i] - right[i]);
  EXPECT_NEAR(model->regression_loss(tokens, right).loss.item(), sum / 3, 1e-5);
  EXPECT_NEAR(model->regression_loss(tokens, right, 0.5).loss.item(), sum / 2, 1e-5);
  require_gradients(*model);
  backward(model->regression_loss(tokens, right).loss);
  for (const NamedParameter& p : named_parameters(*model)) EXPECT_TRUE(gradient(*p.tensor).defined()) << p.name;
}

TEST(EncoderClassifier, ALossOfAnotherKindOfLabelsIsRefused) {
  const PackedTokens tokens = random_tokens({5, 1, 9}, 1);
  const std::vector<float> right = {2, -1, 0.5F};
  const auto regression = build_encoder_classifier(regression_config(), 3);
  EXPECT_THAT(message_of<ConfigError>([&] { regression->loss(tokens, uniform_ids(3, 1, 4), {}); }),
              HasSubstr("label_scores = \"none\": cross entropy needs \"softmax\""));
  const auto classifier = build_encoder_classifier(small_config(Architecture::encoder_classifier), 3);
  EXPECT_THAT(message_of<ConfigError>([&] { classifier->regression_loss(tokens, right); }),
              HasSubstr("label_scores = \"softmax\", 3 labels: squared errors need \"none\" and one"));
  TransformerConfig several = regression_config();
  several.labels = {"similarity", "length"};
  EXPECT_THROW(build_encoder_classifier(several, 3)->regression_loss(tokens, right), ConfigError);
}

// Sets every dropout but the last one of the model to 0.
class LastDropout final : public Visitor {
 public:
  explicit LastDropout(Module& module) { module.visit(*this); }

 protected:
  void on_module(const std::string&, Module& module) override {
    auto* dropout = dynamic_cast<Dropout*>(&module);
    if (dropout == nullptr) return;
    if (last_ != nullptr) last_->set_probability(0);
    last_ = dropout;
  }

 private:
  Dropout* last_ = nullptr;
};

TEST(EncoderClassifier, DropoutStandsInFrontOfTheHead) {
  TransformerConfig config = small_config(Architecture::encoder_classifier);
  config.dropout = 0.5;
  config.pooler = true;
  config.labels.clear();
  for (int64_t i = 0; i < config.d_model; ++i) config.labels.push_back("label " + std::to_string(i));
  const auto model = build_encoder_classifier(config, 3);
  const LastDropout others_are_off(*model);
  for (const NamedParameter& p : named_parameters(*model))  // each logit is one number of what the head reads
    if (p.name == "head.weight")
      for (int64_t i = 0; i < config.d_model; ++i)
        for (int64_t j = 0; j < config.d_model; ++j)
          p.tensor->values<float>()[static_cast<size_t>(i * config.d_model + j)] = i == j ? 1 : 0;
  const PackedTokens tokens = random_tokens({5, 1, 9}, 1);
  const HostView read((*model)(tokens).detach());
  const DropoutScope dropout({.seed = 11, .step = 1});
  const HostView kept((*model)(tokens).detach());
  int dropped = 0;
  for (size_t i = 0; i < read.as<float>().size(); ++i) {
    const float value = kept.as<float>()[i];
    if (value == 0) {
      ++dropped;
    } else {
      EXPECT_NEAR(value, 2 * read.as<float>()[i], 1e-6);
    }
  }
  EXPECT_GT(dropped, 8);
  EXPECT_LT(dropped, 40) << "of 48";
}

}  // namespace
}  // namespace attune
