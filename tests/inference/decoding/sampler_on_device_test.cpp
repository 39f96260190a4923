// Tokens that are drawn from what a device finds are those that the host draws from the whole row.

#include "attune/inference/decoding/sampler_on_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attune/base/json_fields.h"
#include "attune/base/random.h"
#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/row_sampling.h"
#include "tests/inference/decoding/random_language_model.h"
#include "tests/support/devices.h"

namespace attune {
namespace {

using Tokens = std::vector<int32_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum class Kind { normal, ties, holes, flat, peaked };

std::vector<float> row_of(Kind kind, int64_t vocab, uint64_t seed) {
  Random random(seed);
  std::vector<float> row(static_cast<size_t>(vocab));
  for (float& x : row) {
    const double number = random.normal();
    x = static_cast<float>(kind == Kind::flat ? 1e-9 * number : kind == Kind::peaked ? 12 * number : 3 * number);
    if (kind == Kind::ties) x = static_cast<float>(random.below(5));
    if (kind == Kind::holes && random.below(2) == 0) x = -kInfinity;
  }
  row.back() = 1;  // one is possible
  return row;
}

struct Asked {
  SamplingConfig config = {};
  Tokens past = {}, excluded = {}, more_excluded = {};
  std::vector<double> numbers = {};
};

// The tokens by the plain path.
Tokens expected_tokens(const std::vector<float>& row, const Asked& a) {
  Tokens excluded = a.excluded, tokens;
  excluded.insert(excluded.end(), a.more_excluded.begin(), a.more_excluded.end());
  const TokenDistribution distribution = token_distribution(row, a.past, a.config, excluded);
  for (const double number : a.numbers) tokens.push_back(draw(distribution, number));
  return tokens;
}

// By the device's numbers; empty where they do not decide.
Tokens found_tokens(const Device& device, const std::vector<float>& row, const Asked& a) {
  const auto size = static_cast<int64_t>(row.size());
  const Tensor logits = Tensor::from({1, size}, row, device);
  RowDraw draw;
  SamplingJob* const job =
      draw.ask({.logits = &logits, .row = 0, .size = size}, a.config,
               {.past = a.past, .excluded = a.excluded, .more_excluded = a.more_excluded, .numbers = a.numbers});
  if (job == nullptr) return {};
  SamplingJob* const jobs[] = {job};
  sample_rows(jobs);
  Tokens tokens(a.numbers.size());
  return draw.draw(tokens) ? tokens : Tokens{};
}

std::vector<SamplingConfig> some_configs() {
  std::vector<SamplingConfig> all;
  for (const double penalty : {1.0, 1.6, 0.8})
    for (const double temperature : {0.0, 0.7, 1.9})
      for (const int64_t top_k : {0, 1, 20, 600})
        for (const double top_p : {0.3, 0.93, 1.0})
          for (const double min_p : {0.0, 0.08, 1.0}) {
            const SamplingConfig config{.repetition_penalty = penalty,
                                        .temperature = temperature,
                                        .top_k = top_k,
                                        .top_p = top_p,
                                        .min_p = min_p};
            if (RowDraw::suits(config)) all.push_back(config);
          }
  return all;
}

// Whether the device's numbers have to decide. They need not where many sums or weights are next to each other, nor
// where a nucleus may have more tokens than are asked for.
bool has_to_decide(const SamplingConfig& config, Kind kind, int64_t vocab) {
  if (config.temperature == 0 || config.top_k > 0) return true;
  return kind != Kind::flat && (config.top_p == 1 || vocab <= 256 || (kind == Kind::peaked && vocab <= 5000));
}

// Draws from rows of one size, with every option, or one of `each`.
void expect_same_tokens(const Device& device, int64_t vocab, size_t each) {
  Random random(static_cast<uint64_t>(vocab));
  const std::vector<SamplingConfig> configs = some_configs();
  for (size_t c = 0; c < configs.size(); c += each) {
    for (const Kind kind : {Kind::normal, Kind::ties, Kind::holes, Kind::flat, Kind::peaked}) {
      Asked asked{.config = configs[c]};
      std::vector<float> row = row_of(kind, vocab, c + 1);
      for (int i = 0; i < 6; ++i)
        asked.past.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab))));
      if (vocab > 4) {
        asked.excluded = {0, 2, 2};
        asked.more_excluded = {1, 1 << 20};
        row[3] = 0.5f;
      }
      for (int i = 0; i < 3; ++i) asked.numbers.push_back(random.uniform());
      SCOPED_TRACE(testing::Message() << device.text() << ": kind " << static_cast<int>(kind) << " of " << vocab << " "
                                      << write_fields(asked.config).dump());
      const Tokens found = found_tokens(device, row, asked);
      if (found.empty()) {
        EXPECT_FALSE(has_to_decide(asked.config, kind, vocab));
      } else {
        ASSERT_EQ(found, expected_tokens(row, asked));
      }
    }
  }
}

TEST(SamplerOnDevice, DrawsTheTokensOfTheWholeRow) {
  for (const Device& device : all_devices())
    for (const int64_t vocab : {1, 2, 5, 40, 256, 300, 5000}) expect_same_tokens(device, vocab, vocab < 1000 ? 1 : 5);
}

TEST(SamplerOnDevice, DrawsFromLargeVocabularies) {
  for (const Device& device : all_devices()) expect_same_tokens(device, 300'000, 61);
}

TEST(SamplerOnDevice, DoesNotDecideAtABorder) {
  const std::vector<float> row(4, 1.5f);
  const auto decided = [&](const Device& device, const SamplingConfig& config, double number) {
    return !found_tokens(device, row, {.config = config, .numbers = {number}}).empty();
  };
  for (const Device& device : all_devices()) {
    EXPECT_TRUE(decided(device, {}, 0.6));
    EXPECT_FALSE(decided(device, {}, 0.5)) << "between two tokens";
    EXPECT_FALSE(decided(device, {}, 0.5 - 1e-14));
    EXPECT_TRUE(decided(device, {.top_p = 0.6}, 0.5));
    EXPECT_FALSE(decided(device, {.top_p = 0.5}, 0.6)) << "two tokens or three";
    EXPECT_FALSE(decided(device, {.top_p = 0.7}, 1.0 / 3)) << "a border within the nucleus";
    EXPECT_TRUE(decided(device, {.top_p = 0.2}, 0.0)) << "one token has no border";
    EXPECT_TRUE(decided(device, {.top_k = 2}, 0.5)) << "the host has all it needs";
  }
}

TEST(SamplerOnDevice, LeavesToTheHostWhatIsNotThere) {
  const std::vector<float> flat(5000, 0.25f), one = {1, 2, 3};
  const auto decided = [](const Device& device, const std::vector<float>& row, const Asked& asked) {
    return !found_tokens(device, row, asked).empty();
  };
  for (const Device& device : all_devices()) {
    EXPECT_FALSE(decided(device, flat, {.config = {.top_p = 0.9}, .numbers = {0.3}})) << "a nucleus of thousands";
    EXPECT_TRUE(decided(device, flat, {.config = {}, .numbers = {0.30001}}));
    EXPECT_FALSE(decided(device, {1, kInfinity}, {.config = {}, .numbers = {0.3}}));
    EXPECT_FALSE(decided(device, {1, 2}, {.config = {.top_k = 1}, .excluded = {0, 1}, .numbers = {0.3}}));
    const SamplingConfig penalty{.repetition_penalty = 2, .temperature = 0};
    EXPECT_TRUE(decided(device, one, {.config = penalty, .past = {2}, .numbers = {0.3}}));
    EXPECT_FALSE(decided(device, one, {.config = penalty, .past = {3}, .numbers = {0.3}})) << "not in the row";
  }
  EXPECT_FALSE(RowDraw::suits({.repetition_penalty = 2}));
  EXPECT_TRUE(RowDraw::suits({.repetition_penalty = 2, .top_p = 0.9}));
  EXPECT_TRUE(RowDraw::suits({.top_k = kMostLikeliest}));
  EXPECT_FALSE(RowDraw::suits({.top_k = kMostLikeliest + 1}));
}

// A request whose logits a test makes.
class SampledRequest : public testing::Test {
 protected:
  static constexpr int64_t kVocab = 30;

  static DecodingRequest request_of(const SamplingRequest& search) { return {.prompt = {5}, .search = search}; }
  std::unique_ptr<DecodingStrategy> strategy_of(const SamplingRequest& search) const {
    DecodingRequest request = request_of(search);
    return make_strategy(model_, request);
  }

  // Runs a request over logits that are a function of the step and the text's place, on a device.
  std::vector<Tokens> texts_on(const Device& device, const SamplingRequest& search) const {
    const std::unique_ptr<DecodingStrategy> strategy = strategy_of(search);
    strategy->start();
    for (uint64_t step = 0;; ++step) {
      RowInputs inputs;
      strategy->next(inputs);
      std::vector<float> values;
      for (size_t row = 0; row < inputs.rows(); ++row) {
        const auto more = row_of(row % 2 == 0 ? Kind::normal : Kind::holes, kVocab, 100 * step + row);
        values.insert(values.end(), more.begin(), more.end());
      }
      const Tensor logits = Tensor::from({static_cast<int64_t>(inputs.rows()), kVocab}, values, device);
      look_at(*strategy, logits);
      if (!strategy->advance()) break;
    }
    DecodingResult result;
    strategy->finish({}, result);
    std::vector<Tokens> texts;
    for (const SampledTokens& text : result.samples) texts.push_back(text.tokens);
    return texts;
  }

  // After each token some others may not come.
  static std::vector<std::vector<int64_t>> some_phrases() {
    std::vector<std::vector<int64_t>> phrases = {{12}, {5, 11, 13}};
    for (int64_t token = 0; token < kVocab; ++token)
      for (int64_t i = 0; i < 6; ++i) phrases.push_back({token, (3 * token + 5 * i) % kVocab});
    return phrases;
  }

  static void look_at(DecodingStrategy& strategy, const Tensor& logits) {
    std::vector<LogitsRow> rows;
    for (int64_t row = 0; row < logits.size(0); ++row)
      rows.push_back({.logits = &logits, .row = row, .size = logits.size(1)});
    std::vector<SamplingJob*> jobs;
    for (size_t row = 0; row < rows.size(); ++row)
      if (!logits.device().is_host())
        if (SamplingJob* const job = strategy.ask_sampling(row, std::span(rows).subspan(row, 1))) jobs.push_back(job);
    sample_rows(jobs);
    for (size_t row = 0; row < rows.size(); ++row) strategy.look(row, std::span(rows).subspan(row, 1), 0);
  }

  const LanguageDecodingModel model_{random_language_model(small_language_config(kVocab, 64))};
};

TEST_F(SampledRequest, HasTheSameTextsOnEveryDevice) {
  std::vector<SamplingConfig> configs = some_configs();
  configs.push_back({.repetition_penalty = 1.4});  // the host reads the rows
  for (size_t c = 0; c < configs.size(); c += 3) {
    SamplingConfig& config = configs[c];
    config.max_tokens = 9;
    config.seed = c + 1;
    config.min_tokens = static_cast<int64_t>(c % 4);
    config.no_repeat_ngram_size = c % 2 == 0 ? 2 : 0;
    config.suppressed_tokens = {7, 8};
    config.suppressed_at_begin = {9, kVocab + 5};
    if (c % 4 >= 2) config.suppressed_phrases = some_phrases();
    if (c % 4 == 1) config.forced_first_token = 4;
    if (c % 5 == 0) config.forced_last_token = 6;
    SCOPED_TRACE(write_fields(config).dump());
    const SamplingRequest search{.config = config, .never_drawn = {2}, .eos = {1, 3}, .samples = 4, .first_sample = 2};
    const std::vector<Tokens> expected = texts_on(Cpu{}, search);
    ASSERT_EQ(expected.size(), 4u);
    for (const Device& device : devices_under_test()) EXPECT_EQ(texts_on(device, search), expected);
  }
}

TEST_F(SampledRequest, ReadsAllRowsOnTheHostOnlyWhereItHasTo) {
  EXPECT_FALSE(strategy_of({})->reads_on_host());
  EXPECT_FALSE(strategy_of({.config = {.repetition_penalty = 1.2, .top_p = 0.9}})->reads_on_host());
  EXPECT_TRUE(strategy_of({.config = {.repetition_penalty = 1.2}})->reads_on_host());
  EXPECT_TRUE(strategy_of({.likeliest = 0})->reads_on_host()) << "scores are of all logits";
}

}  // namespace
}  // namespace attune
