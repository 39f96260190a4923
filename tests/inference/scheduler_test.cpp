#include "attune/inference/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/decoding_strategy.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/query_groups.h"
#include "tests/inference/counting_model.h"
#include "tests/inference/random_language_model.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kVocab = 40, kContext = 64;
constexpr int32_t kBos = 2, kEos = 3;

template <class Model>
std::shared_ptr<const Model> with_panels(std::unique_ptr<Model> model) {
  make_panels(*model, WeightFormat::float32);
  return model;
}

std::shared_ptr<const DecodingModel> language_model(uint64_t seed = 1, int64_t context = kContext,
                                                    const AttentionKind& attention = MultiHead{}) {
  TransformerConfig config = small_language_config(kVocab, context);
  config.attention = attention;
  if (std::holds_alternative<MultiHeadLatent>(attention)) config.positions = SinusoidalPositions{};
  return std::make_shared<LanguageDecodingModel>(with_panels(random_language_model(config, seed)));
}

std::shared_ptr<const DecodingModel> translation_model(uint64_t seed = 1,
                                                       const AttentionKind& attention = MultiHead{}) {
  auto model = random_model(small_config(attention, NormPlacement::pre, kVocab), seed);
  token_bias(*model, kEos) += 2;
  return std::make_shared<TranslationDecodingModel>(with_panels(std::move(model)));
}

// Requests of every kind with options of their own.
class RandomRequests {
 public:
  RandomRequests(const DecodingModel& model, std::shared_ptr<const DecodingModel> draft, uint64_t seed)
      : sources_(model.source_vocab() > 0), draft_(std::move(draft)), random_(seed) {}

  DecodingRequest next() {
    DecodingRequest request;
    if (sources_) request.source = random_sentences(1, 9, kVocab, random_.below(1000)).front();
    request.prompt = {kBos};
    for (uint64_t n = sources_ ? 0 : random_.below(20); n > 0; --n) request.prompt.push_back(token());
    if (random_.below(3) == 0) {
      request.search = beam();
    } else {
      request.search = sampling();
    }
    request.batch = {.sequences = static_cast<int64_t>(1 + random_.below(20)), .lanes = random_.below(2) == 0 ? 1 : 0};
    return request;
  }

 private:
  int32_t token() { return static_cast<int32_t>(4 + random_.below(kVocab - 4)); }
  BeamSearchRequest beam() {
    BeamSearchRequest request;
    request.options.generation = {.beam_size = static_cast<int64_t>(1 + random_.below(5)),
                                  .max_length = static_cast<int64_t>(1 + random_.below(12))};
    request.options.n_best =
        1 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(request.options.generation.beam_size)));
    if (random_.below(3) == 0) request.options.generation.no_repeat_ngram_size = 2;
    if (random_.below(3) == 0) request.options.generation.repetition_penalty = 1.2;
    if (sources_ && random_.below(3) == 0) request.options.generation.coverage_penalty = 0.2;
    if (sources_ && random_.below(3) == 0) request.options.alignments = true;
    if (random_.below(4) == 0 && request.options.generation.max_length > 1) request.constraints.prefix = {token()};
    return request;
  }
  SamplingRequest sampling() {
    SamplingRequest request{.config = {.temperature = random_.below(3) == 0 ? 0.0 : 1.0,
                                       .top_k = static_cast<int64_t>(random_.below(10)),
                                       .max_tokens = static_cast<int64_t>(1 + random_.below(30)),
                                       .seed = random_.below(100)},
                            .eos = random_.below(2) == 0 ? std::vector{kEos} : std::vector<int32_t>{},
                            .samples = static_cast<int64_t>(1 + random_.below(4))};
    if (random_.below(3) == 0) {
      request.draft = draft_;
      request.draft_tokens = static_cast<int64_t>(1 + random_.below(5));
    } else if (!sources_ && random_.below(3) == 0) {
      request.config.slide = true;
      request.config.max_tokens = 150;
    }
    return request;
  }

  bool sources_;
  std::shared_ptr<const DecodingModel> draft_;
  Random random_;
};

DecodingResult alone(const std::shared_ptr<const DecodingModel>& model, DecodingRequest request) {
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  client.submit(0, std::move(request));
  for (;;)
    for (auto& [tag, result] : client.work()) return std::move(result);
}

void expect_equal(const DecodingResult& found, const DecodingResult& expected, const std::string& where) {
  ASSERT_EQ(found.error == nullptr, expected.error == nullptr) << where;
  ASSERT_EQ(found.hypotheses.size(), expected.hypotheses.size()) << where;
  for (size_t i = 0; i < expected.hypotheses.size(); ++i) {
    EXPECT_EQ(found.hypotheses[i].tokens, expected.hypotheses[i].tokens) << where;
    EXPECT_EQ(found.hypotheses[i].score, expected.hypotheses[i].score) << where;
    EXPECT_EQ(found.hypotheses[i].token_log_probabilities, expected.hypotheses[i].token_log_probabilities) << where;
    EXPECT_EQ(found.hypotheses[i].alignment, expected.hypotheses[i].alignment) << where;
  }
  ASSERT_EQ(found.samples.size(), expected.samples.size()) << where;
  for (size_t i = 0; i < expected.samples.size(); ++i) {
    EXPECT_EQ(found.samples[i].tokens, expected.samples[i].tokens) << where;
    EXPECT_EQ(found.samples[i].finish_reason, expected.samples[i].finish_reason) << where;
  }
}

// What was found in part is the beginning of the whole.
void expect_beginning(const DecodingResult& found, const DecodingResult& whole, const std::string& where) {
  if (found.samples.empty()) return;
  ASSERT_EQ(found.samples.size(), whole.samples.size()) << where;
  for (size_t i = 0; i < found.samples.size(); ++i) {
    const auto &part = found.samples[i].tokens, &all = whole.samples[i].tokens;
    ASSERT_LE(part.size(), all.size()) << where;
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << where;
  }
}

void expect_random_arrivals_change_nothing(const std::shared_ptr<const DecodingModel>& model,
                                           const std::shared_ptr<const DecodingModel>& draft, uint64_t seed) {
  constexpr size_t kRequests = 40;
  RandomRequests requests(*model, draft, seed);
  Random random(seed, 5);
  const int64_t budget = 4 * model->cache_bytes(5 * 64, 40);  // of a few requests
  Scheduler scheduler(model, {.cache_bytes = budget});
  std::map<size_t, DecodingResult> found, expected;
  std::map<size_t, std::shared_ptr<std::atomic<bool>>> flags;
  for (size_t submitted = 0; found.size() < kRequests;) {
    while (submitted < kRequests && random.below(2) == 0) {
      DecodingRequest request = requests.next();
      expected[submitted] = alone(model, request);
      if (random.below(4) == 0) {
        flags[submitted] = std::make_shared<std::atomic<bool>>(false);
        request.cancel = flags[submitted];
      } else if (random.below(6) == 0) {
        request.deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(3000));
      }
      request.on_done = [&found, id = submitted](DecodingResult&& result) { found[id] = std::move(result); };
      ++submitted;
      scheduler.submit(std::move(request));
    }
    for (auto& [id, flag] : flags)
      if (random.below(8) == 0) *flag = true;
    scheduler.drive();
    const SchedulerState state = scheduler.state();
    EXPECT_LE(state.cache_bytes, budget);
    EXPECT_LE(state.reserved_bytes, budget);
  }
  for (size_t i = 0; i < kRequests; ++i) {
    const std::string where = "seed " + std::to_string(seed) + " request " + std::to_string(i);
    if (found[i].cut_short) {
      expect_beginning(found[i], expected[i], where);
    } else {
      expect_equal(found[i], expected[i], where);
    }
  }
  EXPECT_EQ(scheduler.state().slots_in_use, 0);
  EXPECT_EQ(scheduler.state().active, 0);
  EXPECT_EQ(scheduler.state().reserved_bytes, 0);
}

TEST(Scheduler, RandomArrivalsChangeNoResultOfALanguageModel) {
  for (const uint64_t seed : {1, 2, 3}) {
    expect_random_arrivals_change_nothing(language_model(), language_model(2, 48), seed);
    expect_random_arrivals_change_nothing(language_model(1, kContext, MultiHeadLatent{.latent_dim = 12}),
                                          language_model(2), seed);
  }
}

TEST(Scheduler, RandomArrivalsChangeNoResultOfATranslationModel) {
  for (const uint64_t seed : {1, 2, 3}) {
    expect_random_arrivals_change_nothing(translation_model(), translation_model(2), seed);
    expect_random_arrivals_change_nothing(translation_model(1, MultiHeadLatent{.latent_dim = 12}), translation_model(2),
                                          seed);
  }
}

DecodingRequest sampling_of(std::vector<int32_t> prompt, int64_t max_tokens) {
  DecodingRequest request;
  request.prompt = std::move(prompt);
  request.search = SamplingRequest{.config = {.max_tokens = max_tokens}};
  return request;
}

// Neighbours may not move the places where pieces of a prompt end, and a long prompt may not hold them up.
TEST(Scheduler, ALongPromptDoesNotHoldOthersUp) {
  const auto model = language_model(1, 3 * kPromptPiece + 140);
  std::vector<int32_t> prompt;
  Random random(4);
  for (int32_t i = 0; i < 3 * kPromptPiece + 100; ++i)
    prompt.push_back(static_cast<int32_t>(4 + random.below(kVocab - 4)));
  const DecodingRequest whole = sampling_of(prompt, 20), brief = sampling_of({5, 6}, 30);
  const DecodingResult expected = alone(model, whole), expected_brief = alone(model, brief);

  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  int tokens = 0, tokens_before_the_other = -1;
  DecodingRequest first = brief, second = whole;
  first.on_token = [&](const TokenEvent&) { return ++tokens, true; };
  second.on_token = [&](const TokenEvent&) {
    if (tokens_before_the_other < 0) tokens_before_the_other = tokens;
    return true;
  };
  client.submit(0, first);
  client.work();
  client.submit(1, second);
  while (client.outstanding() > 0) {
    for (const auto& [tag, result] : client.work())
      expect_equal(result, tag == 0 ? expected_brief : expected, tag == 0 ? "brief" : "long");
  }
  EXPECT_GE(tokens_before_the_other, 4) << "a token for each of the four pieces";
}

TEST(Scheduler, PromptsInPiecesEqualPromptsAtOnceToTheBit) {
  for (const AttentionKind& attention :
       {AttentionKind{MultiHead{}}, AttentionKind{MultiHeadLatent{.latent_dim = 12}}}) {
    const auto model = language_model(1, 2 * kPromptPiece, attention);
    std::vector<int32_t> prompt;
    Random random(4);
    for (int32_t i = 0; i < kPromptPiece + 100; ++i)
      prompt.push_back(static_cast<int32_t>(4 + random.below(kVocab - 4)));
    KvCache at_once = model->start(), in_pieces = model->start();
    const std::vector<std::span<const int32_t>> none(1);
    DecodingOutput expected, found;
    const auto read = [&](std::span<const int32_t> tokens, bool wanted, KvCache& cache, DecodingOutput& output) {
      const std::vector<int32_t> count = {static_cast<int32_t>(tokens.size())}, logits = {wanted ? 1 : 0};
      model->step({.tokens = tokens, .counts = count, .wanted = logits}, cache, output);
    };
    model->add(none, at_once);
    model->add(none, in_pieces);
    read(prompt, true, at_once, expected);
    read(std::span(prompt).first(kPromptPiece), false, in_pieces, found);
    EXPECT_TRUE(found.rows.empty());
    read(std::span(prompt).subspan(kPromptPiece), true, in_pieces, found);
    ASSERT_EQ(found.rows.size(), 1u);
    EXPECT_EQ(found.rows[0].logits->size(0), 1) << "of the last position alone";
    EXPECT_TRUE(same_bits(*found.rows[0].logits, *expected.rows[0].logits));
  }
}

// A text that grows while prompts are read, so that a step has room for one piece of one prompt.
DecodingRequest growing_text() {
  DecodingRequest request = sampling_of({5, 6}, 200);
  std::get<SamplingRequest>(request.search).never_drawn = {kEos};
  return request;
}

TEST(Scheduler, PromptsTakeTurns) {
  const ThreadScope one_thread(1);
  const auto model = std::make_shared<CountingModel>(language_model(1, 6 * kPromptPiece + 300));
  const auto prompt = [](int32_t tokens) { return std::vector<int32_t>(static_cast<size_t>(tokens), 5); };
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  client.submit(0, growing_text());
  client.work();
  std::vector<DecodingRequest> requests = {growing_text()};
  for (size_t i = 1; i < 4; ++i) requests.push_back(sampling_of(prompt(6 * kPromptPiece), 3));
  for (size_t i = 1; i < 4; ++i) client.submit(i, requests[i]);
  for (int i = 0; i < 4; ++i) client.work();
  std::map<size_t, DecodingResult> found;
  for (size_t i = 4; i < 7; ++i) {
    requests.push_back(sampling_of(prompt(kQueriesByRow + 1 + static_cast<int32_t>(i)), 3));
    DecodingRequest request = requests.back();
    bool begun = false;
    request.on_token = [&begun](const TokenEvent&) { return begun = true; };
    client.submit(i, request);
    int steps = 0;
    for (; !begun; ++steps)
      for (auto& [tag, result] : client.work()) found[tag] = std::move(result);
    EXPECT_LE(steps, 2) << "request " << i;
    while (found.find(i) == found.end())
      for (auto& [tag, result] : client.work()) found[tag] = std::move(result);
  }
  while (client.outstanding() > 0)
    for (auto& [tag, result] : client.work()) found[tag] = std::move(result);
  for (size_t i = 0; i < requests.size(); ++i)
    expect_equal(found.at(i), alone(model, requests[i]), "request " + std::to_string(i));
}

TEST(Scheduler, AStreamOfPromptsDoesNotKeepALongOneWaiting) {
  const ThreadScope one_thread(1);
  constexpr int32_t kPieces = 6;
  const auto model = language_model(1, kPieces * kPromptPiece + 300);
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  client.submit(0, growing_text());
  client.work();
  DecodingRequest request = sampling_of(std::vector<int32_t>(kPieces * kPromptPiece, 5), 1);
  bool begun = false;
  request.on_token = [&](const TokenEvent&) { return begun = true; };
  client.submit(1, request);
  size_t steps = 0;
  for (; !begun; ++steps) {
    client.submit(2 + steps, sampling_of(std::vector<int32_t>(kPromptPiece, 5), 1));
    client.work();
  }
  EXPECT_LE(steps, 2 * kPieces + 1);
  client.cancel();
}

// A request that is to enter at once does so beside a full batch.
TEST(Scheduler, WhoEntersAtOnceNeedsNoPlace) {
  const ThreadScope one_thread(1);
  const auto model = translation_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  BeamSearchRequest beam;
  beam.options.generation = {.beam_size = 2, .max_length = 50, .min_length = 40};
  DecodingRequest request{.source = {5, 6, kEos}, .prompt = {kBos}, .search = beam, .batch = {.sequences = 4}};
  for (size_t i = 0; i < 8; ++i) client.submit(i, request);
  client.work();
  EXPECT_EQ(scheduler.state().active, 4);
  request.at_once = true;
  client.submit(8, request);
  client.work();
  EXPECT_EQ(scheduler.state().active, 5);
  EXPECT_EQ(scheduler.state().waiting, 4);
  const DecodingResult expected = alone(model, request);
  while (client.outstanding() > 0)
    for (const auto& [tag, result] : client.work()) expect_equal(result, expected, std::to_string(tag));
}

// A few tokens would be read row by row, not as a part of a prompt, and have other bits.
TEST(Scheduler, AShortLastPieceOfAPromptIsReadWithTheOneBefore) {
  const auto model = std::make_shared<CountingModel>(language_model(1, 3 * kPromptPiece));
  const auto steps = [&](int64_t length) {
    model->tokens.clear();
    alone(model, sampling_of(std::vector<int32_t>(static_cast<size_t>(length), 5), 1));
    return model->tokens;
  };
  EXPECT_THAT(steps(2 * kPromptPiece + kQueriesByRow), ElementsAre(kPromptPiece, kPromptPiece + kQueriesByRow));
  EXPECT_THAT(steps(2 * kPromptPiece + kQueriesByRow + 1), ElementsAre(kPromptPiece, kPromptPiece, kQueriesByRow + 1));
}

// A model whose logits after one token are not finite.
class Poisoned final : public DecodingModel {
 public:
  Poisoned(std::shared_ptr<const DecodingModel> model, int32_t poison) : model_(std::move(model)), poison_(poison) {}
  int64_t vocab() const override { return model_->vocab(); }
  int64_t source_vocab() const override { return model_->source_vocab(); }
  int64_t longest_sequence() const override { return model_->longest_sequence(); }
  int64_t cache_bytes(int64_t tokens, int64_t sources) const override { return model_->cache_bytes(tokens, sources); }
  KvCache start() const override { return model_->start(); }
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override {
    model_->add(sources, cache);
  }
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    model_->step(input, cache, output);
    size_t end = 0, logits = 0;
    for (size_t r = 0; r < input.counts.size(); ++r) {
      end += static_cast<size_t>(input.counts[r]);
      for (int32_t n = input.wanted[r]; n > 0; --n, ++logits) {
        if (input.tokens[end - static_cast<size_t>(n)] != poison_) continue;
        const LogitsRow& row = output.rows[logits];
        row.logits->values<float>()[static_cast<size_t>(row.row * row.logits->size(1))] =
            std::numeric_limits<float>::quiet_NaN();
      }
    }
  }

 private:
  std::shared_ptr<const DecodingModel> model_;
  int32_t poison_;
};

TEST(Scheduler, LogitsThatAreNoNumbersEndTheirOwnRequestAlone) {
  const auto model = language_model();
  const int32_t poison = 20;
  const auto poisoned = std::make_shared<Poisoned>(model, poison);
  Scheduler scheduler(poisoned);
  SchedulerClient client(scheduler);
  std::vector<DecodingRequest> requests;
  for (int32_t i = 0; i < 6; ++i) {
    requests.push_back(sampling_of({5, 6 + i}, 25));
    auto& sampling = std::get<SamplingRequest>(requests.back().search);
    sampling.never_drawn = {poison};
    sampling.samples = 2;
  }
  requests.push_back(sampling_of({5, poison}, 25));
  DecodingRequest beam = requests.back();
  beam.search = BeamSearchRequest{.options = {.generation = {.beam_size = 3, .max_length = 5}}};
  requests.push_back(beam);
  for (size_t i = 0; i < requests.size(); ++i) client.submit(i, requests[i]);
  while (client.outstanding() > 0) {
    for (const auto& [i, result] : client.work()) {
      if (i < 6) {
        expect_equal(result, alone(model, requests[i]), std::to_string(i));
      } else {
        EXPECT_THROW(std::rethrow_exception(result.error), NumericError);
      }
    }
  }
  EXPECT_EQ(scheduler.state().slots_in_use, 0);
}

TEST(Scheduler, WhatThrowsInACallbackEndsItsOwnRequest) {
  Scheduler scheduler(language_model());
  SchedulerClient client(scheduler);
  DecodingRequest bad = sampling_of({5, 6}, 9), good = sampling_of({5, 6}, 9);
  bad.on_token = [](const TokenEvent&) -> bool { throw std::runtime_error("no more room"); };
  client.submit(0, bad);
  client.submit(1, good);
  while (client.outstanding() > 0) {
    for (const auto& [i, result] : client.work()) {
      EXPECT_EQ(result.error != nullptr, i == 0);
      if (i == 1) {
        EXPECT_EQ(result.samples[0].tokens.size(), 9u);
      }
    }
  }
}

TEST(Scheduler, CallbacksSeeEachTokenAndMayEndTheText) {
  Scheduler scheduler(language_model());
  SchedulerClient client(scheduler);
  DecodingRequest request = sampling_of({5, 6}, 20);
  std::vector<int32_t> seen;
  request.on_token = [&](const TokenEvent& event) {
    seen.push_back(event.token);
    return seen.size() < 7;
  };
  client.submit(0, request);
  while (client.outstanding() > 0) {
    for (const auto& [i, result] : client.work()) {
      EXPECT_EQ(result.samples[0].tokens, seen);
      EXPECT_EQ(result.samples[0].finish_reason, FinishReason::stop);
    }
  }
  EXPECT_EQ(seen.size(), 7u);
}

// Sentences with the widest beam that a configuration may ask for are not searched all at once.
TEST(Scheduler, BeamsBoundABatchToo) {
  const auto model = translation_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  for (size_t i = 0; i < 9; ++i) {
    BeamSearchRequest beam;
    beam.options.generation = {.beam_size = 1024, .max_length = 2};
    client.submit(i, {.source = {5, 6, kEos}, .prompt = {kBos}, .search = beam, .batch = {.lanes = 1}});
  }
  int64_t most = 0;
  size_t done = 0;
  while (client.outstanding() > 0) {
    done += client.work().size();
    most = std::max(most, scheduler.state().active);
  }
  EXPECT_EQ(done, 9u);
  EXPECT_LE(most, 4);
}

TEST(Scheduler, AnInterruptIsSeenInTheNextStep) {
  const auto model = translation_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  std::atomic<bool> interrupt = false;
  BeamSearchRequest beam;
  beam.options.generation = {.beam_size = 4, .max_length = 1000, .min_length = 900};
  client.submit(0, {.source = {5, 6, kEos}, .prompt = {kBos}, .search = beam, .interrupt = &interrupt});
  EXPECT_TRUE(client.work().empty());
  interrupt = true;
  const auto found = client.work();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].second.cut_short, FinishReason::interrupted);
}

TEST(Scheduler, RefusesWhatCouldNeverFit) {
  const auto model = language_model();
  const int64_t budget = model->cache_bytes(10, 0);
  Scheduler scheduler(model, {.cache_bytes = budget});
  EXPECT_EQ(message_of<ConfigError>([&] {
              scheduler.submit(sampling_of({5, 6}, 10));
            }),
            "request: its cache may come to " + std::to_string(model->cache_bytes(11, 0)) +
                " bytes, cache_bytes = " + std::to_string(budget));
  scheduler.submit(sampling_of({5, 6}, 9));
  EXPECT_THAT(message_of<DataError>([&] { scheduler.submit(sampling_of({}, 9)); }), HasSubstr("prompt: has no tokens"));
  EXPECT_THAT(message_of<DataError>([&] {
                scheduler.submit(sampling_of({5, kVocab}, 9));
              }),
              HasSubstr("prompt: token id 40 is outside the vocabulary of 40"));
  DecodingRequest with_source = sampling_of({5}, 3);
  with_source.source = {4};
  EXPECT_THAT(message_of<DataError>([&] { scheduler.submit(with_source); }), HasSubstr("the model reads none"));
}

// Thousands of sentences, eight at a time: the cache is no larger than what eight can have, and what is found is what
// each one gives alone.
TEST(Scheduler, MemoryIsThatOfWhatIsThereAtOnce) {
  constexpr size_t kSentences = 5000;
  constexpr int64_t kBeam = 2, kLongest = 5, kSourceTokens = 7, kAtOnce = 8;  // with eos
  TransformerConfig config = small_config(MultiHeadLatent{.latent_dim = 4}, NormPlacement::pre);
  config.d_model = 16;
  config.heads = 2;
  config.d_ff = 16;
  config.layers = 1;
  auto transformer = random_model(config);
  token_bias(*transformer, kEos) += 2;
  const auto model = std::make_shared<TranslationDecodingModel>(with_panels(std::move(transformer)));
  const auto source = random_sentences(kSentences, kSourceTokens - 1, 40);
  const auto request_of = [&](size_t i) {
    DecodingRequest request;
    request.source = source[i];
    request.prompt = {kBos};
    request.search = BeamSearchRequest{.options = {.generation = {.beam_size = kBeam, .max_length = kLongest}}};
    request.batch = {.sequences = kAtOnce, .lanes = 1};
    return request;
  };
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  const int64_t most = model->cache_bytes(kAtOnce * (kBeam * kLongest + 1), kAtOnce * kSourceTokens);
  size_t submitted = 0;
  while (client.outstanding() > 0 || submitted < kSentences) {
    while (submitted < kSentences && client.outstanding() < 64) {
      client.submit(submitted, request_of(submitted));
      ++submitted;
    }
    for (const auto& [i, result] : client.work())
      if (i % 97 == 0) expect_equal(result, alone(model, request_of(i)), std::to_string(i));
    EXPECT_LE(scheduler.state().cache_bytes, most);
  }
}

TEST(Scheduler, LanesChangeNothing) {
  const auto model = translation_model();
  RandomRequests requests(*model, translation_model(2), 9);
  std::vector<DecodingRequest> all;
  std::vector<DecodingResult> expected;
  for (int i = 0; i < 30; ++i) {
    all.push_back(requests.next());
    expected.push_back(alone(model, all.back()));
  }
  for (const int threads : {1, 2, 4}) {
    const ThreadScope scope(threads);
    for (const int64_t sequences : {1, 8, 64}) {
      Scheduler scheduler(model);
      SchedulerClient client(scheduler);
      for (size_t i = 0; i < all.size(); ++i) {
        DecodingRequest request = all[i];
        request.batch = {.sequences = sequences};
        client.submit(i, request);
      }
      while (client.outstanding() > 0)
        for (const auto& [i, result] : client.work()) expect_equal(result, expected[i], std::to_string(threads));
      EXPECT_EQ(scheduler.state().slots_in_use, 0);
    }
  }
}

}  // namespace
}  // namespace attune
