// Greedy tokens and beams of the encoder-decoders among hub_models() equal those of transformers.

#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/inference/decoding/beam_search.h"
#include "attune/models/transformer.h"
#include "attune/ops/softmax.h"
#include "tests/hub/hub_model.h"

namespace attune {
namespace {

constexpr int64_t kMaxNewTokens = 24;  // of expected.json

bool is_encoder_decoder(const std::string& name) {
  return hub_json(name, "config.json").value("is_encoder_decoder", false);
}

class HubSearch : public testing::TestWithParam<std::string> {
 protected:
  HubSearch()
      : folder_(hub_models() / GetParam()),
        expected_(folder_),
        hub_(folder_),
        module_(hub_.load(LoadedWeights::panels)),
        model_(dynamic_cast<const Transformer&>(*module_)),
        source_(expected_.sequences("input_ids", "attention_mask")) {}

  BeamSearchOptions options(int64_t beam_size, EarlyStopping early_stopping = EarlyStopping::first) const {
    BeamSearchOptions options{.generation = read_hub_generation(folder_, hub_.hub_config())};
    options.generation.beam_size = beam_size;
    options.generation.max_length = kMaxNewTokens;
    options.generation.early_stopping = early_stopping;
    return options;
  }

  // With the start token and the end.
  static std::vector<int32_t> with_ends(const Hypothesis& h, const GenerationConfig& g) {
    std::vector<int32_t> tokens = {static_cast<int32_t>(g.start_token)};
    tokens.insert(tokens.end(), h.tokens.begin(), h.tokens.end());
    if (h.finished) tokens.push_back(static_cast<int32_t>(g.eos_tokens.front()));
    return tokens;
  }

  // The score of an output with its start token, by a pass of the model over all of it.
  double score(size_t sentence, const std::vector<int32_t>& tokens, const GenerationConfig& g) const {
    const NoGrad no_grad;
    const PackedTokens source = packed({source_[sentence]}), read = packed({{tokens.begin(), tokens.end() - 1}});
    const Tensor states = model_.decode(model_.encode(source), source.sequences, read);
    const std::vector<float> logs = host_values<float>(log_softmax(model_.project(states)));
    const auto vocab = static_cast<size_t>(model_.config().target_vocab);
    double sum = 0;
    for (size_t i = 1; i < tokens.size(); ++i) {
      const bool forced = i == static_cast<size_t>(kMaxNewTokens) && tokens[i] == g.forced_last_token;
      if (forced) continue;
      const float* const row = logs.data() + (i - 1) * vocab;
      double left_out = 0;
      for (const int64_t token : g.suppressed_tokens) left_out += std::exp(static_cast<double>(row[token]));
      sum += static_cast<double>(row[tokens[i]]) - (g.renormalize_logits ? std::log1p(-left_out) : 0);
    }
    return sum / g.length_divisor(static_cast<int64_t>(tokens.size()) - 1);
  }

  void expect_not_worse(const BeamSearchOptions& beam, const char* expected) const {
    const auto found = beam_search(model_, packed(source_), beam);
    for (size_t i = 0; i < source_.size(); ++i) {
      const std::vector<int32_t> tokens = with_ends(found[i].at(0), beam.generation);
      const auto wanted = expected_.json.at(expected).at(i).get<std::vector<int32_t>>();
      if (tokens == wanted) continue;
      EXPECT_GT(score(i, tokens, beam.generation), score(i, wanted, beam.generation) - 1e-4)
          << "sentence " << i << ": " << testing::PrintToString(tokens);
    }
  }

  std::filesystem::path folder_;
  Expected expected_;
  HubFolder hub_;
  std::unique_ptr<Module> module_;
  const Transformer& model_;
  std::vector<std::vector<int32_t>> source_;
};

INSTANTIATE_TEST_SUITE_P(Folder, HubSearch, testing::ValuesIn(hub_models_with(is_encoder_decoder)), hub_test_name);

TEST_P(HubSearch, GreedyTokens) {
  const BeamSearchOptions greedy = options(1);
  const auto found = beam_search(model_, packed(source_), greedy);
  for (size_t i = 0; i < source_.size(); ++i)
    EXPECT_EQ(with_ends(found[i].at(0), greedy.generation),
              expected_.json.at("greedy").at(i).get<std::vector<int32_t>>())
        << "sentence " << i;
}

// The same sequence, or one that is not worse.
TEST_P(HubSearch, BeamOfFour) {
  expect_not_worse(options(4), "beam_4");
}

// early_stopping = False. Folders that others made may not have it.
TEST_P(HubSearch, BeamOfFourThatEndsByTheHeuristic) {
  if (!expected_.json.contains("beam_4_heuristic")) GTEST_SKIP() << "expected.json has no beam_4_heuristic";
  const BeamSearchOptions beam = options(4, EarlyStopping::heuristic);
  const auto found = beam_search(model_, packed(source_), beam);
  for (size_t i = 0; i < source_.size(); ++i)  // a search that goes on finds better ones
    EXPECT_EQ(with_ends(found[i].at(0), beam.generation),
              expected_.json.at("beam_4_heuristic").at(i).get<std::vector<int32_t>>())
        << "sentence " << i;
}

}  // namespace
}  // namespace attune
