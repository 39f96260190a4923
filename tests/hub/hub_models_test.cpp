// Every folder of hub_models(): outputs, greedy tokens and beams equal those of transformers.

#include <gtest/gtest.h>

#include "attune/hub/hub_folder.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"

namespace attune {
namespace {

class HubModels : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return hub_models() / GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Folder, HubModels, testing::ValuesIn(hub_model_names()), hub_test_name);

void expect_outputs(const Module& model, const Expected& expected) {
  const PackedTokens tokens = packed(expected.sequences("input_ids", "attention_mask"));
  const auto* const transformer = dynamic_cast<const Transformer*>(&model);
  if (transformer == nullptr) {
    const std::vector<float> wanted =
        dynamic_cast<const EncoderClassifier*>(&model) ? host_values<float>(expected.tensors.load("logits"))
        : expected.tensors.contains("logits")          ? expected.rows_of("logits", "attention_mask")
                                                       : expected.rows_of("last_hidden_state", "attention_mask");
    EXPECT_LT(relative_difference(model_outputs(model, tokens), wanted), kHubTolerance);
    return;
  }
  const NoGrad no_grad;
  const Tensor memory = transformer->encode(tokens);
  EXPECT_LT(relative_difference(host_values<float>(memory), expected.rows_of("encoder_output", "attention_mask")),
            kHubTolerance);
  const PackedTokens targets = packed(expected.sequences("decoder_input_ids"));
  const Tensor states = transformer->decode(memory, tokens.sequences, targets);
  EXPECT_LT(relative_difference(host_values<float>(transformer->project(states)),
                                host_values<float>(expected.tensors.load("logits"))),
            kHubTolerance);
}

TEST_P(HubModels, OutputsEqualThoseOfTransformers) {
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
