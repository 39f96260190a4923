// Every folder of hub_models(): outputs, greedy tokens and beams equal those of transformers.

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/hub/hub_folder.h"
#include "attune/inference/scheduler.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "tests/hub/hub_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

class HubModels : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return hub_models() / GetParam(); }
  bool is_mixture_of_experts() const {
    return GetParam() == "mixtral" || GetParam() == "qwen3-moe" || GetParam() == "deepseek-v3-moe";
  }
};

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Folder, HubModels, testing::ValuesIn(hub_model_names()), test_name);

void expect_outputs(const Module& model, const Expected& expected) {
  const NoGrad no_grad;
  const PackedTokens tokens = packed(expected.sequences("input_ids", "attention_mask"));
  if (const auto* lm = dynamic_cast<const DecoderLm*>(&model)) {
    EXPECT_LT(relative_difference(host_values<float>(lm->project(lm->decode(tokens))),
                                  expected.rows_of("logits", "attention_mask")),
              kHubTolerance);
  } else if (const auto* classifier = dynamic_cast<const EncoderClassifier*>(&model)) {
    EXPECT_LT(relative_difference(host_values<float>((*classifier)(tokens)),
                                  host_values<float>(expected.tensors.load("logits"))),
              kHubTolerance);
  } else if (const auto* masked = dynamic_cast<const EncoderMaskedLm*>(&model)) {
    EXPECT_LT(relative_difference(host_values<float>(masked->project(masked->encode(tokens))),
                                  expected.rows_of("logits", "attention_mask")),
              kHubTolerance);
  } else if (const auto* encoder = dynamic_cast<const EncoderModel*>(&model)) {
    EXPECT_LT(relative_difference(host_values<float>(encoder->encode(tokens)),
                                  expected.rows_of("last_hidden_state", "attention_mask")),
              kHubTolerance);
  } else if (const auto* transformer = dynamic_cast<const Transformer*>(&model)) {
    const Tensor memory = transformer->encode(tokens);
    EXPECT_LT(relative_difference(host_values<float>(memory), expected.rows_of("encoder_output", "attention_mask")),
              kHubTolerance);
    const PackedTokens targets = packed(expected.sequences("decoder_input_ids"));
    const Tensor states = transformer->decode(memory, tokens.sequences, targets);
    EXPECT_LT(relative_difference(host_values<float>(transformer->project(states)),
                                  host_values<float>(expected.tensors.load("logits"))),
              kHubTolerance);
  } else {
    ADD_FAILURE() << "no comparison for this architecture";
  }
}

TEST_P(HubModels, OutputsEqualThoseOfTransformers) {
  if (is_mixture_of_experts()) {
    const std::string message = message_of<ConfigError>([&] { HubFolder hub(folder()); });
    EXPECT_NE(message.find("mixtures of experts are not supported"), std::string::npos) << message;
    return;
  }
  const Expected expected(folder());
  const HubFolder hub(folder());
  {
    SCOPED_TRACE("mapped");
    expect_outputs(*hub.load(LoadedWeights::mapped), expected);
  }
  SCOPED_TRACE("panels");
  expect_outputs(*hub.load(LoadedWeights::panels), expected);
}

}  // namespace
}  // namespace attune
