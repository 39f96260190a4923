// Mixtures of experts of hub_models(): gradients of all that trains equal finite differences.

#include <gtest/gtest.h>

#include "attune/hub/hub_folder.h"
#include "attune/models/decoder_lm.h"
#include "tests/hub/hub_model.h"
#include "tests/support/directional_error.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

class HubMixtures : public testing::TestWithParam<std::string> {};

bool is_mixture(const std::string& name) {
  const Json config = hub_json(name, "config.json");
  const auto chosen = config.find("num_experts_per_tok");
  return chosen != config.end() && !chosen->is_null();
}

INSTANTIATE_TEST_SUITE_P(Folder, HubMixtures, testing::ValuesIn(hub_models_with(is_mixture)), hub_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HubMixtures);

TEST_P(HubMixtures, GradientsMatchFiniteDifferences) {
  const std::filesystem::path folder = hub_models() / GetParam();
  const std::unique_ptr<Module> module = HubFolder(folder).load(LoadedWeights::mapped);
  convert_parameters(*module, DType::f64);
  auto& model = dynamic_cast<DecoderLm&>(*module);
  const PackedTokens tokens = packed(Expected(folder).sequences("input_ids", "attention_mask"));
  const Indices labels = uniform_ids(tokens.sequences.total(), static_cast<int32_t>(model.config().vocab), 3);
  EXPECT_LT(directional_error(model, [&] { return model.loss(tokens, labels, {}).loss; }), 1e-6);
}

}  // namespace
}  // namespace attune
