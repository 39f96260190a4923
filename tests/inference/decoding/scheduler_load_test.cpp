// Many requests at once: none changes what another finds, and memory stays that of what is there.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>

#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "tests/inference/decoding/scheduler_models.h"

namespace attune {
namespace {

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
    BeamSearchOptions options{.generation = {.beam_size = static_cast<int64_t>(1 + random_.below(5)),
                                             .max_length = static_cast<int64_t>(1 + random_.below(12))}};
    GenerationConfig& generation = options.generation;
    options.n_best = 1 + static_cast<int64_t>(random_.below(static_cast<uint64_t>(generation.beam_size)));
    if (random_.below(3) == 0) generation.no_repeat_ngram_size = 2;
    if (random_.below(3) == 0) generation.repetition_penalty = 1.2;
    if (sources_ && random_.below(3) == 0) generation.coverage_penalty = 0.2;
    if (sources_ && random_.below(3) == 0) options.alignments = true;
    SentenceConstraints constraints;
    if (random_.below(4) == 0 && generation.max_length > 1) constraints.prefix = {token()};
    return BeamSearchRequest(std::move(options), std::move(constraints));
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
    request.search = BeamSearchRequest({.generation = {.beam_size = kBeam, .max_length = kLongest}});
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
