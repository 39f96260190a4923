#include "attune/inference/decoding/speculative_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "attune/autograd/graph.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/text_generator.h"
#include "attune/io/model_folder.h"
#include "attune/nn/make_panels.h"
#include "attune/text/character_tokenizer.h"
#include "tests/inference/decoding/random_language_model.h"
#include "tests/inference/decoding/wrapped_model.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<DecoderLm> random_lm(int64_t vocab, uint64_t seed, int64_t context = 32, int64_t layers = 2) {
  return random_language_model(small_language_config(vocab, context, layers), seed);
}

std::shared_ptr<const Tokenizer> letters(const std::string& alphabet) {
  return std::make_shared<CharacterTokenizer>(CharacterTokenizer::build_from_texts({alphabet}));
}

TextGenerator generator_of(const std::string& alphabet, int64_t context = 32) {
  const auto tokenizer = letters(alphabet);
  return TextGenerator({random_lm(tokenizer->vocab_size(), 1, context), tokenizer, {}, TextUnit::line});
}

// The probability of every text of `length` tokens, or fewer up to eos, by the model without cache.
std::map<std::vector<int32_t>, double> every_text(const DecoderLm& model, const std::vector<int32_t>& prompt,
                                                  const SamplingConfig& sampling, const std::vector<int32_t>& never,
                                                  int32_t eos) {
  const NoGrad no_grad;
  std::map<std::vector<int32_t>, double> all;
  std::vector<int32_t> ids = prompt;
  const std::function<void(double)> grow = [&](double probability) {
    const std::vector<int32_t> text(ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()), ids.end());
    if (static_cast<int64_t>(text.size()) == sampling.max_tokens || (!text.empty() && text.back() == eos)) {
      all[text] = probability;
      return;
    }
    const Tensor logits = model.project(model.decode(pack_tokens(ids, {0, static_cast<int32_t>(ids.size())})));
    const auto next =
        token_distribution(logits.values<float>().last(static_cast<size_t>(logits.size(1))), ids, sampling, never);
    for (size_t i = 0; i < next.tokens.size(); ++i) {
      ids.push_back(next.tokens[i]);
      grow(probability * next.probabilities[i]);
      ids.pop_back();
    }
  };
  grow(1);
  return all;
}

// Pearson's statistic, over its standard deviation from what is expected.
double surprise(const std::vector<GeneratedText>& texts, const std::map<std::vector<int32_t>, double>& expected) {
  std::map<std::vector<int32_t>, double> found;
  for (const GeneratedText& t : texts) ++found[t.tokens];
  const auto n = static_cast<double>(texts.size());
  double statistic = 0, cells = 0, rare_expected = 0, rare_found = 0;
  for (const auto& [text, probability] : expected) {
    if (probability * n < 10) {  // in one cell
      rare_expected += probability * n;
      rare_found += found[text];
      continue;
    }
    statistic += std::pow(found[text] - probability * n, 2) / (probability * n);
    ++cells;
  }
  if (rare_expected > 0) statistic += std::pow(rare_found - rare_expected, 2) / rare_expected;
  const double freedom = cells - (rare_expected > 0 ? 0 : 1);
  return (statistic - freedom) / std::sqrt(2 * freedom);
}

TEST(Speculative, TextsAreDistributedAsWithoutDraft) {
  const TextGenerator generator = generator_of("ab c");
  const int32_t vocab = generator.tokenizer().vocab_size();
  const Tokenizer& t = generator.tokenizer();
  const std::vector<int32_t> never = {t.bos_id(), t.pad_id(), t.unk_id()};
  const auto draft = random_lm(vocab, 2, 32, 1);
  for (const SamplingConfig& sampling :
       {SamplingConfig{.max_tokens = 4}, SamplingConfig{.temperature = 1.5, .top_k = 4, .max_tokens = 4},
        SamplingConfig{.repetition_penalty = 1.3, .top_p = 0.8, .max_tokens = 4}}) {
    GenerateOptions options{.sampling = sampling, .samples = 20000, .batch_texts = 2000};
    const auto expected = every_text(generator.model(), generator.encode_prompt("ab"), sampling, never, t.eos_id());
    const std::vector<std::string> prompts = {"ab"};
    EXPECT_LT(std::abs(surprise(generator.generate(prompts, options), expected)), 4) << "without a draft";
    options.draft = draft.get();
    for (const int64_t tokens : {1, 3}) {
      options.draft_tokens = tokens;
      EXPECT_LT(std::abs(surprise(generator.generate(prompts, options), expected)), 4) << tokens;
    }
    // The draft alone is another distribution: the statistic has to see it.
    const TextGenerator small({random_lm(vocab, 2, 32, 1), letters("ab c"), {}, TextUnit::line});
    options.draft = nullptr;
    EXPECT_GT(surprise(small.generate(prompts, options), expected), 50);
  }
}

TEST(Speculative, GreedyTextsAreTheSame) {
  const TextGenerator generator = generator_of("abcdefgh \n.", 40);
  const int32_t vocab = generator.tokenizer().vocab_size();
  const std::vector<std::string> prompts = {"abc", "", "hg fe", "abc", "a"};
  GenerateOptions options{.sampling = SamplingConfig{.repetition_penalty = 1.1, .temperature = 0, .max_tokens = 60}};
  options.samples = 2;
  const auto expected = generator.generate(prompts, options);
  const auto same = random_lm(vocab, 1, 40), other = random_lm(vocab, 2), nearsighted = random_lm(vocab, 3, 6, 1);
  for (const DecoderLm* draft : {same.get(), other.get(), nearsighted.get()}) {
    for (const int64_t tokens : {1, 4, 9}) {
      for (const int64_t batch : {1, 3, 32}) {
        options.draft = draft;
        options.draft_tokens = tokens;
        options.batch_texts = batch;
        std::vector<std::string> arrived(expected.size());
        options.on_text = [&](size_t index, std::string_view added) { arrived[index] += added; };
        const auto found = generator.generate(prompts, options);
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_EQ(found[i].tokens, expected[i].tokens) << i;
          EXPECT_EQ(found[i].text, expected[i].text);
          EXPECT_EQ(found[i].text, arrived[i]);
          EXPECT_EQ(found[i].finish_reason, expected[i].finish_reason);
        }
      }
    }
  }
}

// A model that notes the logits after each token of its only row. Those after tokens that were taken back are replaced.
class NotingModel final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    const int32_t end = cache.position(0) + input.counts.front();
    WrappedModel::step(input, cache, output);
    for (size_t i = 0; i < output.rows.size(); ++i) {
      const HostRow row(output.rows[i]);
      noted[end - static_cast<int32_t>(output.rows.size() - i)].assign(row.logits().begin(), row.logits().end());
    }
  }
  mutable std::map<int32_t, std::vector<float>> noted;  // by the token's position
};

TEST(Speculative, GreedyTextsHaveTheSameLogitsToTheBit) {
  const auto decoding_model = [](const TransformerConfig& config, uint64_t seed) {
    auto model = random_language_model(config, seed);
    make_panels(*model, WeightFormat::float32);
    return std::make_shared<LanguageDecodingModel>(std::move(model));
  };
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 40; ++i) prompt.push_back(4 + 7 * i % 30);
  for (const AttentionKind& attention : {AttentionKind(MultiHead{}), AttentionKind(MultiHeadLatent{})}) {
    TransformerConfig config = small_language_config(40, 96);
    config.attention = attention;
    if (std::holds_alternative<MultiHeadLatent>(attention)) config.positions = SinusoidalPositions{};
    const auto same = decoding_model(config, 1), other = decoding_model(config, 2);
    for (const size_t tokens : {size_t{1}, size_t{2}, prompt.size()}) {
      const auto logits_with = [&](const std::shared_ptr<const DecodingModel>& draft, int64_t draft_tokens) {
        const auto model = std::make_shared<NotingModel>(same);
        Scheduler scheduler(model);
        SchedulerClient client(scheduler);
        SamplingRequest search{.config = {.temperature = 0, .max_tokens = 24}, .draft_tokens = draft_tokens};
        search.draft = draft;
        client.submit(0, {.prompt = {prompt.begin(), prompt.begin() + static_cast<int>(tokens)}, .search = search});
        while (client.outstanding() > 0)
          for (const auto& [tag, result] : client.work()) EXPECT_EQ(result.error, nullptr);
        return model->noted;
      };
      const auto expected = logits_with(nullptr, 1);
      ASSERT_EQ(expected.size(), 24u);
      for (const auto& draft : {same, other})
        for (const int64_t draft_tokens : {1, 9})
          EXPECT_TRUE(logits_with(draft, draft_tokens) == expected)
              << tokens << " tokens, " << draft_tokens << " proposals by " << (draft == same ? "itself" : "another");
    }
  }
}

// 63 texts of 65 rows each are what a step has for several requests.
TEST(Speculative, ManyTextsAreSeveralRequests) {
  const TextGenerator generator = generator_of("abcdefgh");
  const auto draft = random_lm(generator.tokenizer().vocab_size(), 2);
  GenerateOptions options{.sampling = SamplingConfig{.max_tokens = 8}, .samples = 130, .batch_texts = 1000};
  options.draft = draft.get();
  options.draft_tokens = 64;
  int64_t most = 0;
  options.on_token = [&](size_t, int32_t) {
    const SchedulerState state = generator.scheduler().state();
    most = std::max(most, state.waiting + state.active);
  };
  const std::vector<std::string> prompts = {"abc"};
  EXPECT_EQ(generator.generate(prompts, options).size(), 130u);
  EXPECT_EQ(most, 3);
}

TEST(Speculative, ATextDoesNotDependOnItsBatch) {
  const TextGenerator generator = generator_of("abcdefgh");
  const auto draft = random_lm(generator.tokenizer().vocab_size(), 2);
  const std::vector<std::string> prompts = {"abc", "h", "hgfe"};
  GenerateOptions options{.sampling = SamplingConfig{.max_tokens = 20}, .samples = 3};
  options.draft = draft.get();
  const auto together = generator.generate(prompts, options);
  options.batch_texts = 1;
  const auto apart = generator.generate(prompts, options);
  for (size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i].tokens, apart[i].tokens);
}

TEST(Speculative, ResidualIsWhatTheDraftLeaves) {
  const TokenDistribution p{{1, 2, 3}, {0.5, 0.3, 0.2}}, q{{2, 1, 7}, {0.1, 0.6, 0.3}};
  const TokenDistribution rest = residual(p, q);
  EXPECT_THAT(rest.tokens, ElementsAre(2, 3));
  EXPECT_NEAR(rest.probabilities[0], 0.5, 1e-12);
  EXPECT_NEAR(rest.probabilities[1], 0.5, 1e-12);
  EXPECT_EQ(residual(p, p).tokens, p.tokens);
}

TEST(Speculative, RefusesDraftsThatDoNotFit) {
  const TextGenerator generator = generator_of("abc");
  const auto draft = random_lm(generator.tokenizer().vocab_size() + 1, 2);
  GenerateOptions options{.draft = draft.get()};
  EXPECT_EQ(message_of<ConfigError>([&] { generator.generate("a", options); }), "draft: has 8 tokens, the model has 7");
  const auto fits = random_lm(generator.tokenizer().vocab_size(), 2);
  options.draft = fits.get();
  options.sampling = SamplingConfig{.slide = true};
  EXPECT_THAT(message_of<ConfigError>([&] { generator.generate("a", options); }), HasSubstr("slide"));
  options.sampling = SamplingConfig{};
  options.draft_tokens = 0;
  EXPECT_THAT(message_of<ConfigError>([&] { generator.generate("a", options); }), HasSubstr("draft_tokens = 0"));
}

TEST(Speculative, ASourceThatTheDraftCannotReadIsRefused) {
  TransformerConfig config = small_config(MultiHead{}, NormPlacement::pre);
  const auto model = std::make_shared<TranslationDecodingModel>(random_model(config));
  config.positions = LearnedPositions{.max_length = 4};
  Scheduler scheduler(model);
  DecodingRequest request{.source = {5, 6, 7, 8, 3}, .prompt = {2}};
  request.search = SamplingRequest{.draft = std::make_shared<TranslationDecodingModel>(random_model(config))};
  EXPECT_EQ(message_of<DataError>([&] { scheduler.submit(request); }),
            "source: has 5 tokens, the draft reads at most 4");
}

}  // namespace
}  // namespace attune
