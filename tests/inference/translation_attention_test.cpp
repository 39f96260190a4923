#include "attune/inference/translation_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/translation_requests.h"
#include "attune/tensor/host_view.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

// The source token that has the largest weight in the mean over the heads, for each row of the target.
std::vector<int32_t> most_attended(const Tensor& weights) {
  const auto heads = static_cast<size_t>(weights.size(1)), queries = static_cast<size_t>(weights.size(2)),
             keys = static_cast<size_t>(weights.size(3));
  const std::vector<float> values = host_values<float>(weights);
  std::vector<int32_t> best;
  for (size_t q = 0; q < queries; ++q) {
    std::vector<float> mean(keys);
    for (size_t h = 0; h < heads; ++h)
      for (size_t k = 0; k < keys; ++k) mean[k] += values[(h * queries + q) * keys + k];
    best.push_back(static_cast<int32_t>(std::max_element(mean.begin(), mean.end()) - mean.begin()));
  }
  return best;
}

TEST(TranslationAttention, IsWhatTheSearchAlignsBy) {
  for (const TransformerConfig& config : small_configs()) {
    const auto model = random_model(config);
    for (const std::vector<int32_t>& source : random_sentences(3, 9, config.source_vocab)) {
      BeamSearchOptions options{.alignments = true};
      options.generation.max_length = 12;
      const Hypothesis found = beam_search(*model, pack_sentences({source}), options).front().front();
      std::vector<int32_t> target = {options.special.bos};
      target.insert(target.end(), found.tokens.begin(), found.tokens.end());
      const TranslationAttention attention = translation_attention(*model, source, target);
      std::vector<int32_t> best = most_attended(attention.cross.back());
      ASSERT_EQ(best.size(), target.size());
      best.resize(found.alignment.size());  // that of eos, too, where it was found
      EXPECT_EQ(best, found.alignment) << name_of(config);
    }
  }
}

TEST(TranslationAttention, AGuidedHeadIsWhatTheSearchAlignsBy) {
  for (TransformerConfig config : small_configs()) {
    config.alignment_layer = 1;
    config.alignment_head = 3;
    const auto model = random_model(config);
    for (const std::vector<int32_t>& source : random_sentences(3, 9, config.source_vocab)) {
      BeamSearchOptions options{.alignments = true};
      options.generation.max_length = 12;
      const Hypothesis found = beam_search(*model, pack_sentences({source}), options).front().front();
      std::vector<int32_t> target = {options.special.bos};
      target.insert(target.end(), found.tokens.begin(), found.tokens.end());
      const Tensor weights = translation_attention(*model, source, target).cross[0];  // [1, heads, queries, keys]
      const int64_t size = weights.size(2) * weights.size(3);
      std::vector<int32_t> best = most_attended(
          weights.reshape({-1}).rows(2 * size, 3 * size).reshape({1, 1, weights.size(2), weights.size(3)}));
      best.resize(found.alignment.size());
      EXPECT_EQ(best, found.alignment) << name_of(config);
    }
  }
}

TEST(TranslationAttention, HasEveryLayerAndItsRowsSumToOne) {
  const TransformerConfig config = small_config(MultiHeadLatent{}, NormPlacement::pre);
  const auto model = random_model(config);
  const std::vector<int32_t> source = {5, 6, 7, 8, 3}, target = {2, 9, 10};
  const TranslationAttention attention = translation_attention(*model, source, target);
  const auto expect_rows = [&](const std::vector<Tensor>& layers, int64_t queries, int64_t keys) {
    ASSERT_EQ(layers.size(), static_cast<size_t>(config.layers));
    for (const Tensor& weights : layers) {
      ASSERT_EQ(weights.shape(), (Shape{1, config.heads, queries, keys}));
      const std::vector<float> values = host_values<float>(weights);
      for (auto row = values.begin(); row != values.end(); row += keys) {
        float sum = 0;
        for (int64_t key = 0; key < keys; ++key) sum += row[key];
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  };
  expect_rows(attention.encoder, 5, 5);
  expect_rows(attention.decoder, 3, 3);
  expect_rows(attention.cross, 3, 5);
  const std::vector<Tensor> cross = cross_attention_weights(*model, source, target);
  expect_rows(cross, 3, 5);
  for (size_t i = 0; i < cross.size(); ++i) EXPECT_LT(relative_error(cross[i], attention.cross[i]), 1e-5);
}

// As Marian's start token, and the language that each output of mBART begins with.
TEST(TranslationAttention, TheDecoderBeginsAsTheSearchDoes) {
  std::vector<std::string> words;
  for (int i = 0; i < 36; ++i) words.push_back("w" + std::to_string(i));
  const auto tokenizer = std::make_shared<const WhitespaceTokenizer>(words);
  const std::shared_ptr<Transformer> model = random_model(small_config(MultiHead{}, NormPlacement::pre));
  GenerationConfig generation{.beam_size = 1, .max_length = 6};
  generation.start_token = 0;
  generation.forced_first_token = 7;
  const Translator translator(model, tokenizer, tokenizer, generation);
  const TranslationRequests requests(translator, {});
  const int32_t word = tokenizer->token_id("w5");
  EXPECT_EQ(requests.decoder_input("w5 w5", "text"), (std::vector<int32_t>{0, 7, word, word}));
  EXPECT_EQ(requests.end_token(), tokenizer->eos_id());
  const std::vector<int32_t> found = translator.translate("w1 w2").n_best.front().tokens;
  ASSERT_EQ(found.front(), 7);
  EXPECT_EQ(requests.decoder_input(found).size(), found.size() + 1);
}

}  // namespace
}  // namespace attune
