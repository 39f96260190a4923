#include "attune/inference/decoding/ensemble_decoding_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/translator.h"
#include "attune/io/model_folder.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
constexpr int32_t kBosId = 2, kEosId = 3;

using Models = std::vector<std::shared_ptr<const Transformer>>;

// Of different depths and kinds of attention.
Models small_models() {
  TransformerConfig deep = small_config(MultiHeadLatent{}, NormPlacement::post);
  deep.layers = 3;
  return {random_model(small_config(MultiHead{}, NormPlacement::pre), 1), random_model(deep, 2),
          random_model(small_config(MultiHead{}, NormPlacement::post), 3)};
}

std::shared_ptr<const DecodingModel> ensemble_of(const Models& models) {
  std::vector<std::shared_ptr<const DecodingModel>> all;
  for (const auto& model : models) all.push_back(std::make_shared<TranslationDecodingModel>(model));
  return std::make_shared<EnsembleDecodingModel>(std::move(all));
}

// The logarithm of the mean probability of each token after each of `tokens`, one step after the other.
std::vector<std::vector<double>> plain_log_probabilities(const Models& models, const std::vector<int32_t>& source,
                                                         const std::vector<int32_t>& tokens) {
  std::vector<std::vector<double>> mean;
  for (const auto& model : models) {
    const PackedTokens packed = pack_sentences({source});
    KvCache cache = model->start(model->encode(packed), packed.sequences);
    for (size_t t = 0; t < tokens.size(); ++t) {
      const Tensor logits = model->step(std::span(&tokens[t], 1), cache);
      const auto values = logits.values<float>();
      double sum = 0;
      for (const float v : values) sum += std::exp(static_cast<double>(v));
      if (mean.size() <= t) mean.emplace_back(values.size());
      for (size_t i = 0; i < values.size(); ++i)
        mean[t][i] += std::exp(static_cast<double>(values[i])) / sum / static_cast<double>(models.size());
    }
  }
  for (auto& step : mean)
    for (double& p : step) p = std::log(p);
  return mean;
}

std::vector<DecodingResult> decode(const std::shared_ptr<const DecodingModel>& model,
                                   const std::vector<std::vector<int32_t>>& sources, const auto& search) {
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  for (size_t i = 0; i < sources.size(); ++i)
    client.submit(i, {.source = sources[i], .prompt = {kBosId}, .search = search});
  std::vector<DecodingResult> results(sources.size());
  for (size_t done = 0; done < sources.size();)
    for (auto& [tag, result] : client.work()) {
      if (result.error) std::rethrow_exception(result.error);
      results[tag] = std::move(result);
      ++done;
    }
  return results;
}

TEST(EnsembleDecodingModel, BeamSearchFindsProbabilitiesThatAreTheMean) {
  const Models models = small_models();
  const auto sources = random_sentences(9, 12, 40);
  const BeamSearchRequest search(
      BeamSearchOptions{.generation = {.beam_size = 4, .max_length = 9}, .n_best = 4, .alignments = true});
  const std::vector<DecodingResult> results = decode(ensemble_of(models), sources, search);
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSERT_FALSE(results[i].hypotheses.empty());
    for (const Hypothesis& h : results[i].hypotheses) {
      std::vector<int32_t> read = h.tokens, next = h.tokens;
      read.insert(read.begin(), kBosId);
      next.push_back(kEosId);
      const auto expected = plain_log_probabilities(models, sources[i], read);
      for (size_t t = 0; t < h.token_log_probabilities.size(); ++t)
        EXPECT_NEAR(h.token_log_probabilities[t], expected[t][static_cast<size_t>(next[t])], 2e-5) << i << " " << t;
      EXPECT_EQ(h.alignment.size(), h.tokens.size());
    }
  }
}

TEST(EnsembleDecodingModel, GreedySearchAndSamplingTakeTheLikeliestOfTheMean) {
  const Models models = small_models();
  const auto sources = random_sentences(6, 12, 40);
  const BeamSearchRequest greedy({.generation = {.beam_size = 1, .max_length = 20}});
  const SamplingRequest sampling{.config = {.temperature = 1, .top_k = 1, .max_tokens = 20, .seed = 5},
                                 .never_drawn = {SpecialIds{}.pad, kBosId},
                                 .eos = {kEosId}};
  const auto found = decode(ensemble_of(models), sources, greedy);
  const auto sampled = decode(ensemble_of(models), sources, sampling);
  for (size_t i = 0; i < sources.size(); ++i) {
    std::vector<int32_t> read = {kBosId};
    while (read.size() < 10) {
      std::vector<double> last = plain_log_probabilities(models, sources[i], read).back();
      last[static_cast<size_t>(SpecialIds{}.pad)] = last[kBosId] = -INFINITY;  // never in an output
      const auto token = static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
      if (token == kEosId) break;
      read.push_back(token);
    }
    const std::vector<int32_t> expected(read.begin() + 1, read.end());
    std::vector<int32_t> by_search = found[i].hypotheses.front().tokens, drawn = sampled[i].samples.front().tokens;
    by_search.resize(std::min(by_search.size(), expected.size()));
    drawn.resize(std::min(drawn.size(), expected.size()));
    EXPECT_EQ(by_search, expected) << i;
    EXPECT_EQ(drawn, expected) << i;
  }
}

TEST(EnsembleDecodingModel, OfOneModelTwiceFindsWhatTheModelFinds) {
  const Models models = small_models();
  const auto sources = random_sentences(20, 12, 40);
  GenerationConfig generation{.beam_size = 3, .max_length = 12};
  for (const double penalty : {1.0, 1.5}) {
    generation.repetition_penalty = penalty;
    generation.penalize_log_probabilities = penalty != 1;
    const BeamSearchRequest search(BeamSearchOptions{.generation = generation});
    const auto alone = decode(std::make_shared<TranslationDecodingModel>(models[1]), sources, search);
    const auto twice = decode(ensemble_of({models[1], models[1]}), sources, search);
    for (size_t i = 0; i < sources.size(); ++i)
      EXPECT_EQ(alone[i].hypotheses.front().tokens, twice[i].hypotheses.front().tokens) << i;
  }
}

// Its log probabilities would get another penalty than the models' logits.
TEST(EnsembleDecodingModel, RefusesAPenaltyForLogits) {
  const Models models = small_models();
  const auto refusal = [&](const auto& search) {
    return message_of<ConfigError>([&] { decode(ensemble_of({models[1], models[1]}), {{5, 6, kEosId}}, search); });
  };
  const auto beams = [](int64_t beam_size, bool of_log_probabilities) {
    return BeamSearchRequest(BeamSearchOptions{.generation = {.beam_size = beam_size,
                                                              .max_length = 4,
                                                              .repetition_penalty = 1.5,
                                                              .penalize_log_probabilities = of_log_probabilities}});
  };
  const char* const message = "repetition_penalty = 1.5: an ensemble has no logits";
  EXPECT_THAT(refusal(beams(3, false)), HasSubstr(message));
  EXPECT_THAT(refusal(beams(1, true)), HasSubstr(message)) << "a beam of one is greedy search";
  EXPECT_THAT(refusal(SamplingRequest{.config = {.repetition_penalty = 1.5, .max_tokens = 4}}), HasSubstr(message));
}

TEST(EnsembleDecodingModel, RefusesOtherVocabularies) {
  const std::string message = message_of<ConfigError>([] {
    ensemble_of({random_model(small_config(MultiHead{}, NormPlacement::pre, 40)),
                 random_model(small_config(MultiHead{}, NormPlacement::pre, 41))});
  });
  EXPECT_EQ(message, "ensemble: vocabularies of 41 and 41 tokens for source and target, of the first model 40 and 40");
}

class TranslatorEnsembleTest : public ::testing::Test {
 protected:
  std::filesystem::path save(const std::string& name, uint64_t seed, const std::string& last_word = "w35") {
    std::vector<std::string> words;
    for (int i = 0; i < 35; ++i) words.push_back("w" + std::to_string(i));
    words.push_back(last_word);
    const WhitespaceTokenizer tokenizer(words);
    const auto model = random_model(small_config(MultiHead{}, NormPlacement::pre), seed);
    save_model_folder(folder_.path() / name, *model, tokenizer, tokenizer, {.beam_size = 2, .max_length = 8});
    return folder_.path() / name;
  }
  TemporaryFolder folder_;
};

TEST_F(TranslatorEnsembleTest, TranslatesWithSeveralFoldersAndNamesTheOneThatDoesNotFit) {
  const auto a = save("a", 1), b = save("b", 2), other = save("other", 3, "different");
  const std::vector<std::string> sentences = {"w1 w2 w3", "w9 w4", "w30"};
  const Translator alone = Translator::load(a), twice = Translator::load_ensemble({a, a});
  const Translator both = Translator::load_ensemble({a, b});
  const auto expected = alone.translate(sentences), same = twice.translate(sentences);
  const auto found = both.translate(sentences);
  bool differs = false;
  for (size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(same[i].text(), expected[i].text());
    differs = differs || found[i].text() != expected[i].text();
  }
  EXPECT_TRUE(differs);
  EXPECT_THAT(message_of<ConfigError>([&] {
                Translator::load_ensemble({a, other});
              }),
              HasSubstr("other: token 39 of the source vocabulary is \"different\", of the first model's \"w35\""));
  EXPECT_THROW(Translator::load_ensemble({}), ConfigError);
}

}  // namespace
}  // namespace attune
