#include "attune/inference/decoding/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/nn/attention/query_groups.h"
#include "tests/inference/decoding/counting_model.h"
#include "tests/inference/decoding/scheduler_models.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    while (!begun) {
      for (auto& [tag, result] : client.work()) found[tag] = std::move(result);
      ++steps;
    }
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
  while (!begun) {
    client.submit(2 + steps++, sampling_of(std::vector<int32_t>(kPromptPiece, 5), 1));
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
  const BeamSearchRequest beam({.generation = {.beam_size = 2, .max_length = 50, .min_length = 40}});
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

// One that needs the whole batch gets it, although there is always somebody who enters at once.
TEST(Scheduler, WhoEntersAtOnceKeepsNobodyWaitingForEver) {
  const ThreadScope one_thread(1);
  Scheduler scheduler(language_model());
  SchedulerClient client(scheduler);
  DecodingRequest single = sampling_of({5, 6}, 10);
  single.batch = {.sequences = 4, .lanes = 1};
  DecodingRequest whole = single;
  std::get<SamplingRequest>(whole.search).samples = 4;
  client.submit(0, single);
  client.work();
  client.submit(1, whole);
  single.at_once = true;
  bool done = false;
  for (size_t i = 2; i < 400 && !done; ++i) {
    client.submit(i, single);
    for (const auto& [tag, result] : client.work()) done = done || tag == 1;
  }
  EXPECT_TRUE(done);
}

// Nor the next one: those that entered before it while both waited count for it too.
TEST(Scheduler, WhoEntersAtOnceKeepsTheSecondWaitingNoLonger) {
  const ThreadScope one_thread(1);
  Scheduler scheduler(language_model());
  SchedulerClient client(scheduler);
  DecodingRequest single = sampling_of({5, 6}, 10);
  single.batch = {.sequences = 4, .lanes = 1};
  DecodingRequest whole = single;
  std::get<SamplingRequest>(whole.search).samples = 4;
  client.submit(0, single);
  client.work();
  client.submit(1, whole);
  bool begun = false;
  whole.on_token = [&](const TokenEvent&) { return begun = true; };
  client.submit(2, whole);
  int before = 0;
  for (size_t i = 3; i < 600 && !begun; ++i) {
    DecodingRequest at_once = single;
    at_once.at_once = true;
    at_once.on_token = [&, first = true](const TokenEvent&) mutable {
      if (std::exchange(first, false) && !begun) ++before;
      return true;
    };
    client.submit(i, at_once);
    client.work();
  }
  EXPECT_TRUE(begun);
  EXPECT_LE(before, 64);
  client.cancel();
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

// Who comes next waits for the step at work.
TEST(Scheduler, AStepReadsAboutOnePieceOfAllPrompts) {
  const ThreadScope one_thread(1);
  const auto model = std::make_shared<CountingModel>(language_model(1, 2 * kPromptPiece));
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  for (size_t i = 0; i < 8; ++i) client.submit(i, sampling_of(std::vector<int32_t>(kPromptPiece + 300, 5), 1));
  while (client.outstanding() > 0) client.work();
  for (const int64_t tokens : model->tokens) EXPECT_LE(tokens, 2 * kPromptPiece);
}

// Sentences with the widest beam that a configuration may ask for are not searched all at once.
TEST(Scheduler, BeamsBoundABatchToo) {
  const auto model = translation_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  for (size_t i = 0; i < 9; ++i) {
    const BeamSearchRequest beam({.generation = {.beam_size = 1024, .max_length = 2}});
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

// The model judges several tokens of each text at once.
TEST(Scheduler, DraftsBoundABatchToo) {
  const auto draft = language_model(2);
  Scheduler scheduler(language_model());
  SchedulerClient client(scheduler);
  for (size_t i = 0; i < 9; ++i) {
    DecodingRequest request = sampling_of({5, 6}, 3);
    auto& sampling = std::get<SamplingRequest>(request.search);
    sampling.samples = 16;
    sampling.draft = draft;
    sampling.draft_tokens = 64;
    request.batch = {.sequences = 1000, .lanes = 1};
    client.submit(i, request);
  }
  int64_t most = 0;
  size_t done = 0;
  while (client.outstanding() > 0) {
    done += client.work().size();
    most = std::max(most, scheduler.state().active);
  }
  EXPECT_EQ(done, 9u);
  EXPECT_LE(most, most_rows_of_step(kVocab) / (16 * 65));
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

}  // namespace
}  // namespace attune
