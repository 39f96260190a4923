// How requests end before their search does: cancelled, interrupted, with errors of their own and of others.

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/scheduler.h"
#include "tests/inference/decoding/scheduler_models.h"
#include "tests/inference/decoding/wrapped_model.h"

namespace attune {
namespace {

// A model whose step finds that its requests were cancelled meanwhile.
class Cancelling final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override {
    if (source_vocab() == 0) return WrappedModel::add(sources, cache);  // reads nothing
    call([&] { WrappedModel::add(sources, cache); });
  }
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    call([&] { WrappedModel::step(input, cache, output); });
  }

  const std::shared_ptr<std::atomic<bool>> cancel = std::make_shared<std::atomic<bool>>(false);
  bool relents = false;  // whether the flag is reset once a pass is given up
  mutable int calls = 0, given_up = 0;

 private:
  template <class F>
  void call(F&& f) const {
    ++calls;
    *cancel = true;
    try {
      f();
    } catch (const Interrupted&) {
      ++given_up;
      if (relents) *cancel = false;
      throw;
    }
  }
};

TEST(Scheduler, APassWhoseRequestsAreCancelledEndsBetweenLayers) {
  const ThreadScope one_thread(1);
  const auto inner = language_model(1, 2 * kPromptPiece);
  const auto model = std::make_shared<Cancelling>(inner);
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  DecodingRequest cancelled = sampling_of(std::vector<int32_t>(kPromptPiece + 100, 5), 4);
  const DecodingRequest other = sampling_of(std::vector<int32_t>(kPromptPiece + 200, 7), 9);
  std::optional<DecodingResult> ended, found;
  cancelled.cancel = model->cancel;
  cancelled.on_done = [&](DecodingResult&& result) { ended = std::move(result); };
  scheduler.submit(cancelled);  // reads alone: the other one has no room in this step
  client.submit(0, other);
  while (client.outstanding() > 0)
    for (auto& [tag, result] : client.work()) found = std::move(result);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->cut_short, FinishReason::interrupted);
  EXPECT_EQ(ended->error, nullptr);
  EXPECT_EQ(model->given_up, 1);
  ASSERT_TRUE(found);
  expect_equal(*found, alone(inner, other), "the other one");
  EXPECT_EQ(scheduler.state().slots_in_use, 0);
}

TEST(Scheduler, SourcesOfCancelledRequestsAreNotRead) {
  const ThreadScope one_thread(1);
  const auto inner = translation_model();
  const auto model = std::make_shared<Cancelling>(inner);
  Scheduler scheduler(model);
  DecodingRequest request{.source = {5, 6, kEos}, .prompt = {kBos}, .search = BeamSearchRequest{}};
  const DecodingResult expected = alone(inner, request);
  std::optional<DecodingResult> ended;
  request.cancel = model->cancel;
  request.on_done = [&](DecodingResult&& result) { ended = std::move(result); };
  scheduler.submit(request);
  while (!ended) scheduler.drive();
  EXPECT_EQ(ended->cut_short, FinishReason::interrupted);
  EXPECT_EQ(model->calls, 1) << "the encoder, and no step";
  EXPECT_EQ(model->given_up, 1);
  SchedulerClient client(scheduler);
  request.cancel = nullptr;
  client.submit(0, request);
  while (client.outstanding() > 0)
    for (const auto& [tag, result] : client.work()) expect_equal(result, expected, "the next one");
}

// A caller may reset its flag at any time.
TEST(Scheduler, WhatWasGivenUpEndsThoughItsFlagIsReset) {
  const ThreadScope one_thread(1);
  for (const bool translates : {false, true}) {
    const auto model =
        std::make_shared<Cancelling>(translates ? translation_model() : language_model(1, 2 * kPromptPiece));
    model->relents = true;
    Scheduler scheduler(model);
    DecodingRequest request = sampling_of(std::vector<int32_t>(kPromptPiece + 100, 5), 4);
    if (translates) request = {.source = {5, 6, kEos}, .prompt = {kBos}, .search = BeamSearchRequest{}};
    std::optional<DecodingResult> ended;
    request.cancel = model->cancel;
    request.on_done = [&](DecodingResult&& result) { ended = std::move(result); };
    scheduler.submit(request);
    for (int i = 0; i < 10 && !ended; ++i) scheduler.drive();
    ASSERT_TRUE(ended) << (translates ? "while its source was read" : "while its prompt was read");
    EXPECT_EQ(ended->cut_short, FinishReason::interrupted);
    EXPECT_EQ(ended->error, nullptr);
    EXPECT_EQ(model->given_up, 1);
    EXPECT_EQ(scheduler.state().slots_in_use, 0);
  }
}

// A model that fails where attention to the source is wanted.
class Inattentive final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    if (input.source_attention) throw std::runtime_error("no attention");
    WrappedModel::step(input, cache, output);
  }
};

// Who wants attention has a pass of his own, after that of the others.
TEST(Scheduler, WhoIsDoneHasNoErrorOfALaterPass) {
  const ThreadScope one_thread(1);
  const auto inner = translation_model();
  Scheduler scheduler(std::make_shared<Inattentive>(inner));
  SchedulerClient client(scheduler);
  BeamSearchOptions options{.generation = {.beam_size = 2, .max_length = 1}};
  DecodingRequest plain{.source = {5, 6, kEos}, .prompt = {kBos}, .search = BeamSearchRequest(options)};
  options.alignments = true;
  DecodingRequest attentive = plain;
  attentive.search = BeamSearchRequest(options);
  client.submit(0, plain);
  client.submit(1, attentive);
  while (client.outstanding() > 0) {
    for (const auto& [tag, result] : client.work()) {
      EXPECT_EQ(result.error != nullptr, tag == 1);
      if (tag == 0) expect_equal(result, alone(inner, plain), "the other one");
    }
  }
}

// A model whose logits after one token are not finite.
class Poisoned final : public WrappedModel {
 public:
  Poisoned(std::shared_ptr<const DecodingModel> model, int32_t poison)
      : WrappedModel(std::move(model)), poison_(poison) {}
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    WrappedModel::step(input, cache, output);
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
  beam.search = BeamSearchRequest({.generation = {.beam_size = 3, .max_length = 5}});
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

// A draft that has no memory for a source.
class DraftWithoutMemory final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  void add(std::span<const std::span<const int32_t>>, KvCache&) const override { throw std::bad_alloc(); }
};

TEST(Scheduler, ADraftThatThrowsEndsItsOwnRequest) {
  const auto model = language_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  std::vector<DecodingRequest> requests = {sampling_of({5, 6}, 9), sampling_of({5, 7}, 9), sampling_of({5, 8}, 9)};
  std::get<SamplingRequest>(requests[0].search).draft = std::make_shared<DraftWithoutMemory>(language_model(2));
  std::get<SamplingRequest>(requests[1].search).draft = language_model(2);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].batch.lanes = 1;
    client.submit(i, requests[i]);
  }
  while (client.outstanding() > 0) {
    for (const auto& [i, result] : client.work()) {
      if (i == 0) {
        EXPECT_THROW(std::rethrow_exception(result.error), std::bad_alloc);
      } else {
        expect_equal(result, alone(model, requests[i]), std::to_string(i));
      }
    }
  }
  EXPECT_EQ(scheduler.state().slots_in_use, 0);
}

// Drives until `ends` are there, whatever is thrown.
void drive_until(Scheduler& scheduler, const int& ends, int expected) {
  for (int i = 0; i < 100 && ends < expected; ++i) {
    try {
      scheduler.drive();
    } catch (const std::bad_alloc&) {
    }
  }
  EXPECT_EQ(ends, expected);
  EXPECT_EQ(scheduler.state().active, 0);
}

TEST(Scheduler, WhatThrowsAtTheEndOfOneRequestLosesNoOther) {
  Scheduler scheduler(language_model());
  int ends = 0;
  DecodingRequest request = sampling_of({5, 6}, 4);
  request.on_done = [&](DecodingResult&&) {
    ++ends;
    throw std::bad_alloc();
  };
  for (int i = 0; i < 3; ++i) scheduler.submit(request);
  EXPECT_THROW(
      {
        while (scheduler.state().waiting + scheduler.state().active > 0) scheduler.drive();
      },
      std::bad_alloc);
  drive_until(scheduler, ends, 3);
}

// A model that has no memory for a step, and then none for an empty cache.
class Exhausted final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;
  KvCache start() const override {
    if (std::exchange(exhausted, false)) throw std::bad_alloc();
    return WrappedModel::start();
  }
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    if (exhausted) throw std::bad_alloc();
    WrappedModel::step(input, cache, output);
  }

  mutable bool exhausted = false;
};

TEST(Scheduler, AStepThatThrowsLosesNoRequest) {
  const ThreadScope one_thread(1);
  const auto model = std::make_shared<Exhausted>(language_model());
  Scheduler scheduler(model);
  int ends = 0;
  DecodingRequest at_work = sampling_of({5, 6}, 20);
  at_work.on_done = [&](DecodingResult&&) { ++ends; };
  DecodingRequest cancelled = at_work;
  cancelled.cancel = std::make_shared<std::atomic<bool>>(true);
  scheduler.submit(at_work);
  scheduler.drive();
  scheduler.submit(cancelled);
  model->exhausted = true;
  EXPECT_THROW(scheduler.drive(), std::bad_alloc);
  drive_until(scheduler, ends, 2);
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

TEST(Scheduler, AnInterruptIsSeenInTheNextStep) {
  const auto model = translation_model();
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  std::atomic<bool> interrupt = false;
  const BeamSearchRequest beam({.generation = {.beam_size = 4, .max_length = 1000, .min_length = 900}});
  client.submit(0, {.source = {5, 6, kEos}, .prompt = {kBos}, .search = beam, .interrupt = &interrupt});
  EXPECT_TRUE(client.work().empty());
  interrupt = true;
  const auto found = client.work();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].second.cut_short, FinishReason::interrupted);
}

}  // namespace
}  // namespace attune
