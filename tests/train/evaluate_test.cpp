// How texts are put together does not change what is measured. The encoder-decoder is in update_test.cpp.

#include "attune/train/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "attune/autograd/graph.h"
#include "attune/base/interrupt.h"
#include "attune/base/random.h"
#include "attune/ops/softmax.h"
#include "attune/tensor/host_view.h"
#include "attune/train/batch_loss.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"

namespace attune {
namespace {

TransformerConfig config_of(Architecture architecture) {
  TransformerConfig config;
  config.architecture = architecture;
  config.vocab = 20;
  config.d_model = 32;
  config.heads = 4;
  config.layers = 2;
  config.d_ff = 64;
  config.dropout = config.attention_dropout = config.activation_dropout = 0.5;  // which evaluate() turns off
  config.labels = {"a", "b", "c"};
  config.context_length = 6;
  return config;
}

TokenDocuments documents_of(const std::vector<int>& lengths) {
  Random random(4);
  TokenDocuments documents;
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) documents.ids.push_back(static_cast<int32_t>(4 + random.below(16)));
    documents.offsets.push_back(documents.tokens());
  }
  return documents;
}

TEST(EvaluateClassifier, BatchesDoNotChangePredictions) {
  const auto model = build_encoder_classifier(config_of(Architecture::encoder_classifier), 3);
  const TokenDocuments texts = documents_of({3, 9, 1, 5, 5, 12, 2});
  std::vector<LabelledExample> examples;
  for (int64_t i = 0; i < texts.documents(); ++i) {
    const auto tokens = texts.document(i);
    examples.push_back({{tokens.begin(), tokens.end()}, static_cast<int32_t>(i % 3)});
  }
  const ClassifierEvaluation small = evaluate(*model, examples, {.batch_tokens = 6, .label_smoothing = 0.1});
  const ClassifierEvaluation large = evaluate(*model, examples, {.batch_tokens = 1000, .label_smoothing = 0.1});
  EXPECT_EQ(small.predictions, large.predictions);
  ASSERT_EQ(small.predictions.size(), examples.size());
  std::vector<float> probabilities;  // of each text alone
  for (const LabelledExample& example : examples) {
    const auto size = static_cast<int32_t>(example.tokens.size());
    const HostView row(softmax((*model)(pack_tokens(example.tokens, {0, size}))));
    const auto values = row.as<float>();
    probabilities.insert(probabilities.end(), values.begin(), values.end());
  }
  double nll = 0, correct = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const std::span<const float> row = std::span<const float>(probabilities).subspan(3 * i, 3);
    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5);
    for (size_t k = 0; k < 3; ++k) EXPECT_LE(row[k], row[static_cast<size_t>(small.predictions[i])]);
    nll -= std::log(static_cast<double>(row[static_cast<size_t>(examples[i].label)]));
    if (small.predictions[i] == examples[i].label) ++correct;
  }
  EXPECT_NEAR(small.loss.nll, nll / 7, 1e-5);
  EXPECT_NEAR(large.loss.nll, nll / 7, 1e-5);
  EXPECT_NE(small.loss.loss, small.loss.nll);
  EXPECT_DOUBLE_EQ(small.loss.accuracy, correct / 7);

  for (LabelledExample& example : examples) example.label = -1;
  examples[1].label = 2;
  const ClassifierEvaluation unlabelled = evaluate(*model, examples, {.batch_tokens = 6});
  EXPECT_EQ(unlabelled.predictions, small.predictions);
  EXPECT_EQ(unlabelled.loss.tokens, 1);
  examples[1].label = -1;
  EXPECT_EQ(evaluate(*model, examples).loss.tokens, 0);
  EXPECT_THROW(evaluate(*model, std::span<const LabelledExample>{}), DataError);
}

std::vector<LabelledExample> numbered_examples() {
  const TokenDocuments texts = documents_of({3, 9, 1, 5, 5, 12, 2});
  std::vector<LabelledExample> examples;
  for (int64_t i = 0; i < texts.documents(); ++i)
    examples.push_back({.tokens = {texts.document(i).begin(), texts.document(i).end()},
                        .label = 0,
                        .value = static_cast<float>(i) / 2});
  return examples;
}

TransformerConfig regression_config() {
  TransformerConfig config = config_of(Architecture::encoder_classifier);
  config.label_scores = LabelScores::none;
  config.labels = {"score"};
  return config;
}

TEST(EvaluateRegression, BatchesDoNotChangeTheNumbers) {
  const auto model = build_encoder_classifier(regression_config(), 3);
  std::vector<LabelledExample> examples = numbered_examples();
  const ClassifierEvaluation small = evaluate(*model, examples, {.batch_tokens = 6});
  EXPECT_EQ(evaluate(*model, examples, {.batch_tokens = 1000}).values, small.values);
  EXPECT_TRUE(small.predictions.empty());
  ASSERT_EQ(small.values.size(), examples.size());
  double sum = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    const auto size = static_cast<int32_t>(examples[i].tokens.size());
    const HostView alone((*model)(pack_tokens(examples[i].tokens, {0, size})));
    EXPECT_NEAR(alone.as<float>()[0], small.values[i], 1e-5);
    sum += (small.values[i] - examples[i].value) * (small.values[i] - examples[i].value);
  }
  EXPECT_NEAR(small.loss.loss, sum / 7, 1e-5);
  EXPECT_EQ(small.loss.tokens, 7);
  EXPECT_EQ(small.loss.nll, 0);
  for (size_t i = 1; i < examples.size(); ++i) examples[i].label = -1;
  EXPECT_EQ(evaluate(*model, examples).loss.tokens, 1) << "one text has a number";
  TransformerConfig several = regression_config();
  several.labels = {"similarity", "length"};
  EXPECT_THROW(evaluate(*build_encoder_classifier(several, 3), examples), ConfigError);
}

// -log p of the token at `place` after the `context` tokens before it.
double nll_of(const DecoderLm& model, const TokenDocuments& documents, int64_t begin, int64_t place, int64_t context) {
  const int64_t first = std::max(begin, place - context);
  const Window window{first, static_cast<int32_t>(place - first)};
  LanguageModelBatch batch = pack(documents, std::span(&window, 1));
  for (size_t i = 0; i + 1 < batch.labels.size(); ++i) batch.labels[i] = -1;
  return batch_loss(model, batch, {}).sum_negative_log_likelihood.item();
}

TEST(EvaluateLanguageModel, EveryTokenIsPredictedOnceFromItsContext) {
  const TransformerConfig config = config_of(Architecture::decoder_lm);
  const auto model = build_decoder_lm(config, 3);
  const TokenDocuments documents = documents_of({17, 1, 4, 30});
  for (const int64_t stride : {0, 1, 4, 6}) {
    const CorpusLoss small = evaluate(*model, documents, stride, {.batch_tokens = 7});
    const CorpusLoss large = evaluate(*model, documents, stride, {.batch_tokens = 1000});
    EXPECT_EQ(small.tokens, documents.tokens() - documents.documents());
    EXPECT_EQ(large.tokens, small.tokens);
    EXPECT_NEAR(small.nll, large.nll, 1e-5);
    EXPECT_DOUBLE_EQ(small.accuracy, large.accuracy);
    if (stride != 1) continue;  // then each token sees all that the model can see
    const NoGrad no_grad;
    double nll = 0;
    for (int64_t d = 0; d < documents.documents(); ++d) {
      const int64_t begin = documents.offsets[static_cast<size_t>(d)],
                    end = documents.offsets[static_cast<size_t>(d) + 1];
      for (int64_t place = begin + 1; place < end; ++place)
        nll += nll_of(*model, documents, begin, place, config.context_length);
    }
    EXPECT_NEAR(small.nll, nll / static_cast<double>(small.tokens), 1e-5);
  }
  EXPECT_THROW(evaluate(*model, documents_of({1, 1})), DataError);
  EXPECT_THROW(evaluate(*model, documents, 7), ConfigError);
}

TEST(EvaluateMaskedLanguageModel, BatchesDoNotChangeTheLoss) {
  const auto model = build_encoder_masked_lm(config_of(Architecture::encoder_masked_lm), 3);
  const TokenDocuments texts = documents_of({7, 3, 12, 1, 9, 20});
  const std::vector<int32_t> offsets(texts.offsets.begin(), texts.offsets.end());
  const MaskingOptions masking{.probability = 0.3, .vocab_size = 20, .special_ids = {0, 1, 2, 3}, .seed = 2};
  const MaskedBatch masked = mask_tokens(texts.ids, offsets, masking);
  const CorpusLoss small = evaluate(*model, masked, {.batch_tokens = 10});
  const CorpusLoss large = evaluate(*model, masked, {.batch_tokens = 1000});
  EXPECT_EQ(small.tokens, static_cast<int64_t>(masked.rows.size()));
  EXPECT_EQ(large.tokens, small.tokens);
  EXPECT_NEAR(small.nll, large.nll, 1e-5);
  EXPECT_DOUBLE_EQ(small.accuracy, large.accuracy);
  EXPECT_THROW(evaluate(*model, MaskedBatch{.tokens = {5}, .offsets = {0, 1}, .rows = {}, .labels = {}}), DataError);
}

// Whatever reads token 3, which no text has by itself, has no finite numbers from there on.
template <class Model>
std::unique_ptr<Model> spoilt(std::unique_ptr<Model> model) {
  for (const NamedParameter& p : named_parameters(*model))
    if (p.name == "embedding.weight" || p.name == "source_embedding.weight")
      p.tensor->values<float>()[static_cast<size_t>(3 * p.tensor->size(1))] = std::numeric_limits<float>::quiet_NaN();
  return model;
}

// evaluate(options) with the place of examples names the one, and without it returns a loss that is not finite.
template <class Evaluate>
void expect_named(const std::string& message, Evaluate&& evaluate) {
  for (const int64_t batch_tokens : {6, 1000}) {
    EvaluateOptions options{.batch_tokens = batch_tokens};
    EXPECT_TRUE(std::isnan(evaluate(options))) << "training has an answer of its own to such a validation";
    options.place = [](size_t example) { return "in:" + std::to_string(example); };
    EXPECT_EQ(message_of<NumericError>([&] { evaluate(options); }).substr(0, message.size()), message);
  }
}

TEST(EvaluateNotFinite, TheFirstExampleIsNamed) {
  TokenDocuments texts = documents_of({3, 9, 1, 5, 5, 12, 2});
  texts.ids[static_cast<size_t>(texts.offsets[3]) + 1] = 3;
  texts.ids[static_cast<size_t>(texts.offsets[5]) + 1] = 3;
  const auto language_model = spoilt(build_decoder_lm(config_of(Architecture::decoder_lm), 3));
  expect_named("in:3: the loss is not finite",
               [&](const EvaluateOptions& options) { return evaluate(*language_model, texts, 2, options).nll; });

  std::vector<LabelledExample> examples;
  std::vector<ParallelExample> pairs;
  for (int64_t i = 0; i < texts.documents(); ++i) {
    const auto tokens = texts.document(i);
    examples.push_back({{tokens.begin(), tokens.end()}, 0});
    pairs.push_back({{tokens.begin(), tokens.end()}, {5, 6}});
  }
  const auto classifier = spoilt(build_encoder_classifier(config_of(Architecture::encoder_classifier), 3));
  expect_named("in:3: a label's logit is ",
               [&](const EvaluateOptions& options) { return evaluate(*classifier, examples, options).loss.nll; });
  const auto regression = spoilt(build_encoder_classifier(regression_config(), 3));
  expect_named("in:3: a label's logit is ",
               [&](const EvaluateOptions& options) { return evaluate(*regression, examples, options).loss.loss; });

  TransformerConfig config = config_of(Architecture::encoder_decoder);
  config.source_vocab = config.target_vocab = 20;
  const auto translator = spoilt(build_transformer(config, 3));
  expect_named("in:3: the loss is not finite",
               [&](const EvaluateOptions& options) { return evaluate(*translator, pairs, 2, options).nll; });
}

// What calls evaluate() with `options` on ranks that share the work has to return the same on each, and for any number
// of them.
template <class Evaluate>
void expect_the_same_on_any_number_of_ranks(Evaluate&& evaluate) {
  const std::vector<double> alone = evaluate(EvaluateOptions{.batch_tokens = 6, .label_smoothing = 0.1});
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<std::vector<double>> found(static_cast<size_t>(ranks));
    run_in_process(ranks, [&](Communicator& communicator) {
      found[static_cast<size_t>(communicator.rank())] =
          evaluate(EvaluateOptions{.batch_tokens = 6, .label_smoothing = 0.1, .ranks = &communicator});
    });
    for (const std::vector<double>& of_rank : found) EXPECT_EQ(of_rank, alone) << ranks << " ranks";
  }
}

std::vector<double> numbers_of(const CorpusLoss& loss) {
  return {loss.loss, loss.nll, loss.perplexity, loss.accuracy, static_cast<double>(loss.tokens)};
}

TEST(EvaluateOnRanks, IsTheSameToTheBitForAnyNumber) {
  const TokenDocuments texts = documents_of({3, 9, 1, 5, 5, 12, 2});
  const auto classifier = build_encoder_classifier(config_of(Architecture::encoder_classifier), 3);
  std::vector<LabelledExample> examples;
  for (int64_t i = 0; i < texts.documents(); ++i)
    examples.push_back({{texts.document(i).begin(), texts.document(i).end()}, static_cast<int32_t>(i % 3)});
  expect_the_same_on_any_number_of_ranks([&](const EvaluateOptions& options) {
    const ClassifierEvaluation result = evaluate(*classifier, examples, options);
    std::vector<double> numbers = numbers_of(result.loss);
    numbers.insert(numbers.end(), result.predictions.begin(), result.predictions.end());
    return numbers;
  });
  const auto regression = build_encoder_classifier(regression_config(), 3);
  expect_the_same_on_any_number_of_ranks([&](const EvaluateOptions& options) {
    const ClassifierEvaluation result = evaluate(*regression, numbered_examples(), options);
    std::vector<double> numbers(result.values.begin(), result.values.end());
    numbers.push_back(result.loss.loss);
    return numbers;
  });
  const auto language_model = build_decoder_lm(config_of(Architecture::decoder_lm), 3);
  expect_the_same_on_any_number_of_ranks(
      [&](const EvaluateOptions& options) { return numbers_of(evaluate(*language_model, texts, 2, options)); });
}

TEST(EvaluateOnRanks, AnInterruptOnOneEndsAll) {
  const auto model = build_decoder_lm(config_of(Architecture::decoder_lm), 3);
  const TokenDocuments texts = documents_of({30, 30});
  const std::atomic<bool> interrupt{true};
  run_in_process(3, [&](Communicator& communicator) {
    EXPECT_THROW(
        evaluate(
            *model, texts, 0,
            {.batch_tokens = 6, .interrupt = communicator.rank() == 1 ? &interrupt : nullptr, .ranks = &communicator}),
        Interrupted);
  });
}

}  // namespace
}  // namespace attune
