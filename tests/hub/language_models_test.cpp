// Language models of hub_models(): greedy continuations and beams equal those of transformers.

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/inference/decoding/scheduler.h"
#include "tests/hub/hub_model.h"

namespace attune {
namespace {

constexpr int64_t kNewTokens = 24;  // as expected.json says in "generation"

class HubLanguageModels : public testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return hub_models() / GetParam(); }
};

// Whether the folder's class predicts the next token.
bool is_language_model(const std::string& name) {
  const std::string architecture = hub_json(name, "config.json").at("architectures").at(0);
  return architecture.ends_with("ForCausalLM") || architecture == "GPT2LMHeadModel";
}

INSTANTIATE_TEST_SUITE_P(Folder, HubLanguageModels, testing::ValuesIn(hub_models_with(is_language_model)),
                         hub_test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HubLanguageModels);

using Tokens = std::vector<int32_t>;

// A model of a folder, its generation settings, and what to continue.
struct Case {
  Expected expected;
  HubFolder hub;
  std::shared_ptr<const DecoderLm> model;
  SamplingConfig sampling;
  std::vector<Tokens> prompts;

  explicit Case(const std::filesystem::path& folder)
      : expected(folder), hub(folder), sampling(read_hub_sampling(folder, hub.hub_config())) {
    std::shared_ptr<Module> module = hub.load(LoadedWeights::panels);
    model = std::dynamic_pointer_cast<const DecoderLm>(module);
    prompts = expected.sequences("input_ids", "attention_mask");
  }

  bool ends(int32_t token) const { return std::ranges::find(sampling.eos_tokens, token) != sampling.eos_tokens.end(); }
  // What follows the prompt, without an end.
  Tokens continuation(const Json& row, size_t prompt) const {
    Tokens tokens = row.get<Tokens>();
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompts[prompt].size()));
    if (!tokens.empty() && ends(tokens.back())) tokens.pop_back();
    return tokens;
  }
  DecodingResult result_of(DecodingRequest request) const {
    Scheduler scheduler(std::make_shared<LanguageDecodingModel>(model));
    SchedulerClient client(scheduler);
    client.submit(0, std::move(request));
    while (client.outstanding() > 0)
      for (auto& [tag, result] : client.work()) return std::move(result);
    return {};
  }
  // The log probability of a continuation and, where it is shorter than the limit, of the end after it; for each token.
  double score(const Tokens& prompt, Tokens tokens) const {
    if (static_cast<int64_t>(tokens.size()) < kNewTokens)
      tokens.push_back(static_cast<int32_t>(sampling.eos_tokens.at(0)));
    Tokens all = prompt;
    all.insert(all.end(), tokens.begin(), tokens.end());
    const NoGrad no_grad;
    const Tensor logits = model->project(model->decode(packed({all})));
    const std::vector<float> values = host_values<float>(logits);
    const auto vocab = static_cast<size_t>(logits.size(1));
    double sum = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const float* row = values.data() + (prompt.size() + i - 1) * vocab;
      double total = 0;
      for (size_t t = 0; t < vocab; ++t) total += std::exp(static_cast<double>(row[t]) - static_cast<double>(row[0]));
      sum += static_cast<double>(row[tokens[i]]) - static_cast<double>(row[0]) - std::log(total);
    }
    return sum / static_cast<double>(tokens.size());
  }
};

TEST_P(HubLanguageModels, GreedyTokensEqualThoseOfTransformers) {
  const Case c(folder());
  ASSERT_TRUE(c.expected.json.contains("greedy"));
  for (size_t i = 0; i < c.prompts.size(); ++i) {
    SamplingRequest search{.config = c.sampling};
    search.config.max_tokens = kNewTokens;
    search.eos.assign(c.sampling.eos_tokens.begin(), c.sampling.eos_tokens.end());
    const DecodingResult result = c.result_of({.prompt = c.prompts[i], .search = search});
    if (result.error) std::rethrow_exception(result.error);
    Tokens found = result.samples.at(0).tokens;
    if (!found.empty() && c.ends(found.back())) found.pop_back();
    EXPECT_EQ(found, c.continuation(c.expected.json.at("greedy").at(i), i)) << "prompt " << i;
  }
}

TEST_P(HubLanguageModels, BeamsAreNotWorseThanThoseOfTransformers) {
  const Case c(folder());
  ASSERT_TRUE(c.expected.json.contains("beam_4"));
  for (size_t i = 0; i < c.prompts.size(); ++i) {
    BeamSearchOptions options;
    GenerationConfig& g = options.generation;
    g.beam_size = 4;
    g.length_penalty = 1;
    g.length_normalization = LengthNormalization::power;
    g.max_length = kNewTokens;
    g.max_length_ratio = 0;
    g.early_stopping = EarlyStopping::first;
    g.rank_unfinished = true;
    g.special_tokens = true;
    g.eos_tokens = c.sampling.eos_tokens;
    g.suppressed_tokens = c.sampling.suppressed_tokens;
    g.suppressed_at_begin = c.sampling.suppressed_at_begin;
    g.min_length = c.sampling.min_tokens;
    g.no_repeat_ngram_size = c.sampling.no_repeat_ngram_size;
    g.repetition_penalty = c.sampling.repetition_penalty;
    g.penalize_log_probabilities = true;
    g.forced_last_token = c.sampling.forced_last_token;
    const DecodingResult result = c.result_of({.prompt = c.prompts[i], .search = BeamSearchRequest(options)});
    if (result.error) std::rethrow_exception(result.error);
    const Tokens found = result.hypotheses.at(0).tokens;
    const Tokens wanted = c.continuation(c.expected.json.at("beam_4").at(i), i);
    if (found == wanted) continue;
    const bool same_scores = g.no_repeat_ngram_size == 0 && g.repetition_penalty == 1;  // with and without the rules
    if (same_scores) {
      EXPECT_GT(c.score(c.prompts[i], found), c.score(c.prompts[i], wanted) - 1e-4) << "prompt " << i;
    } else {
      EXPECT_EQ(found, wanted) << "prompt " << i;
    }
  }
}

}  // namespace
}  // namespace attune
