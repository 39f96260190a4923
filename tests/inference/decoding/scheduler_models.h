#pragma once
// Small models, requests and comparisons for tests of the scheduler.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attune/inference/decoding/scheduler.h"
#include "attune/nn/make_panels.h"
#include "tests/inference/decoding/random_language_model.h"
#include "tests/inference/random_model.h"

namespace attune {

inline constexpr int64_t kVocab = 40, kContext = 64;
inline constexpr int32_t kBos = 2, kEos = 3;

template <class Model>
std::shared_ptr<const Model> with_panels(std::unique_ptr<Model> model) {
  make_panels(*model, WeightFormat::float32);
  return model;
}

inline std::shared_ptr<const DecodingModel> language_model(uint64_t seed = 1, int64_t context = kContext,
                                                           const AttentionKind& attention = MultiHead{}) {
  TransformerConfig config = small_language_config(kVocab, context);
  config.attention = attention;
  if (std::holds_alternative<MultiHeadLatent>(attention)) config.positions = SinusoidalPositions{};
  return std::make_shared<LanguageDecodingModel>(with_panels(random_language_model(config, seed)));
}

inline std::shared_ptr<const DecodingModel> translation_model(uint64_t seed = 1,
                                                              const AttentionKind& attention = MultiHead{}) {
  auto model = random_model(small_config(attention, NormPlacement::pre, kVocab), seed);
  token_bias(*model, kEos) += 2;
  return std::make_shared<TranslationDecodingModel>(with_panels(std::move(model)));
}

/// What a request gives with nothing beside it.
inline DecodingResult alone(const std::shared_ptr<const DecodingModel>& model, DecodingRequest request) {
  Scheduler scheduler(model);
  SchedulerClient client(scheduler);
  client.submit(0, std::move(request));
  for (;;)
    for (auto& [tag, result] : client.work()) return std::move(result);
}

inline void expect_equal(const DecodingResult& found, const DecodingResult& expected, const std::string& where) {
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

inline DecodingRequest sampling_of(std::vector<int32_t> prompt, int64_t max_tokens) {
  DecodingRequest request;
  request.prompt = std::move(prompt);
  request.search = SamplingRequest{.config = {.max_tokens = max_tokens}};
  return request;
}

}  // namespace attune
