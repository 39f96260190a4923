#include "attune/inference/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/batches.h"
#include "attune/inference/call_progress.h"
#include "attune/inference/place_model.h"
#include "attune/inference/text_limits.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/host_view.h"
#include "attune/text/encoder_text.h"

namespace attune {
namespace {

void check_finite(std::span<const float> logits) {
  for (const float logit : logits)
    if (!std::isfinite(logit)) fail<NumericError>("a label's logit is {}", logit);
}

// The scores of a row of logits, in the order of the labels.
std::vector<double> scores_of(std::span<const float> logits, LabelScores scores) {
  std::vector<double> values(logits.begin(), logits.end());
  if (scores == LabelScores::sigmoid)
    for (double& value : values) value = 1 / (1 + std::exp(-value));
  if (scores != LabelScores::softmax) return values;
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
  return values;
}

// The `top` likeliest; 0: all.
std::vector<LabelProbability> ranked(const std::vector<double>& probabilities, int64_t top) {
  std::vector<LabelProbability> labels;
  for (const double p : probabilities) labels.push_back({static_cast<int32_t>(labels.size()), p});
  const size_t kept = top > 0 ? std::min(static_cast<size_t>(top), labels.size()) : labels.size();
  std::ranges::partial_sort(labels, labels.begin() + static_cast<std::ptrdiff_t>(kept),
                            [](const LabelProbability& a, const LabelProbability& b) {
                              return a.probability != b.probability ? a.probability > b.probability : a.label < b.label;
                            });
  labels.resize(kept);
  labels.shrink_to_fit();
  return labels;
}

Encoding encode_checked(const Tokenizer& tokenizer, const TextPair& pair, int64_t longest) {
  return tokenizer.encode_pair(pair.first, pair.second, {.truncation = Truncation{.max_length = longest}});
}

}  // namespace

Classifier::Classifier(ClassifierFolder files, ProductPrecision precision, const std::optional<Device>& device)
    : tokenizer_(std::move(files.tokenizer)),
      max_tokens_(files.max_tokens),
      tokenizer_frames_texts_(files.tokenizer_frames_texts),
      precision_(precision) {
  check_vocabulary(files.model->config(), *tokenizer_, vocabulary_size(tokenizer_frames_texts_));
  place_model(*files.model, device, precision);
  model_ = std::move(files.model);
}

Classifier Classifier::load(const std::filesystem::path& folder, ProductPrecision precision,
                            const std::optional<Device>& device) {
  const Device on = device.value_or(Cpu{});
  return Classifier(OpenedFolder(folder).load_classifier(weights_for(precision, on), on), precision);
}

const std::vector<std::string>& Classifier::labels() const {
  return model_->config().labels;
}
int64_t Classifier::max_tokens() const {
  return std::min(max_tokens_, model_->config().longest_sequence());
}

Classification Classifier::classify(std::string_view text, const ClassifyOptions& options) const {
  const std::string copy(text);
  return std::move(classify(std::span(&copy, 1), options).front());
}

std::vector<Classification> Classifier::classify(std::initializer_list<std::string> texts,
                                                 const ClassifyOptions& options) const {
  return classify(std::span(texts.begin(), texts.size()), options);
}

Encoding Classifier::encode(std::string_view text, const ClassifyOptions& options) const {
  check_text(text, "text");
  return encode_for_encoder(*tokenizer_, tokenizer_frames_texts_, text, longest(options));
}

Encoding Classifier::encode(const TextPair& pair, const ClassifyOptions& options) const {
  check_text(pair.first, "first text");
  check_text(pair.second, "second text");
  return encode_checked(*tokenizer_, pair, longest(options));
}

std::vector<Classification> Classifier::classify(std::span<const std::string> texts,
                                                 const ClassifyOptions& options) const {
  const int64_t most = longest(options);
  std::vector<Encoding> encoded;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], fmt::format("text {}", i + 1));
    encoded.push_back(encode_for_encoder(*tokenizer_, tokenizer_frames_texts_, texts[i], most));
  }
  return classify_encoded(encoded, options);
}

std::vector<Classification> Classifier::classify(std::span<const TextPair> pairs,
                                                 const ClassifyOptions& options) const {
  const int64_t most = longest(options);
  std::vector<Encoding> encoded;
  for (size_t i = 0; i < pairs.size(); ++i) {
    check_text(pairs[i].first, fmt::format("pair {}, first text", i + 1));
    check_text(pairs[i].second, fmt::format("pair {}, second text", i + 1));
    encoded.push_back(encode_checked(*tokenizer_, pairs[i], most));
  }
  return classify_encoded(encoded, options);
}

int64_t Classifier::longest(const ClassifyOptions& options) const {
  const int64_t max_tokens = options.max_tokens.value_or(max_tokens_);
  check_least("max_tokens", max_tokens, 2);
  const int64_t longest = std::min(max_tokens, model_->config().longest_sequence());
  check_least("positions.max_length", longest, 2);
  return longest;
}

std::vector<Classification> Classifier::classify_encoded(std::span<const Encoding> texts,
                                                         const ClassifyOptions& options) const {
  check_least("top", options.top, 0);
  std::vector<Classification> results(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) results[i].cut_tokens = texts[i].cut;
  for_each_row(texts, options, [&](size_t i, std::span<const float> logits) {
    results[i].labels = ranked(probabilities(logits), options.top);
  });
  return results;
}

std::vector<double> Classifier::probabilities(std::span<const float> logits) const {
  return scores_of(logits, model_->config().label_scores);
}

std::vector<std::vector<float>> Classifier::logits(std::span<const Encoding> texts,
                                                   const ClassifyOptions& options) const {
  std::vector<std::vector<float>> results(texts.size());
  for_each_row(texts, options,
               [&](size_t i, std::span<const float> logits) { results[i].assign(logits.begin(), logits.end()); });
  return results;
}

void Classifier::for_each_row(std::span<const Encoding> texts, const ClassifyOptions& options,
                              const std::function<void(size_t, std::span<const float>)>& use) const {
  check_least("batch_texts", options.batch_texts, 1);
  check_least("batch_tokens", options.batch_tokens, 1);
  int64_t done = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].ids.empty()) continue;
    if (!options.skip) fail<DataError>("text {}: has no tokens", i + 1);
    options.skip(i, "has no tokens");
    ++done;
  }
  CallProgress progress(options.progress);
  const auto total = static_cast<int64_t>(texts.size());
  progress.show(done, total);
  const NoGrad no_grad;
  const ProductPrecisionScope precision(precision_);
  for (const std::vector<size_t>& batch : batches_by_length(texts, options.batch_texts, options.batch_tokens)) {
    check_interrupt(options.interrupt);
    const Tensor rows = (*model_)(pack_batch(texts, batch, model_->config().token_types));
    const HostView view(rows);
    const auto labels = static_cast<size_t>(rows.size(1));
    for (size_t i = 0; i < batch.size(); ++i) {
      const auto row = view.as<float>().subspan(i * labels, labels);
      try {
        check_finite(row);
        use(batch[i], row);
      } catch (const NumericError& error) {
        if (!options.skip) fail<NumericError>("text {}: {}", batch[i] + 1, error.what());
        options.skip(batch[i], error.what());
      }
    }
    done += static_cast<int64_t>(batch.size());
    progress.show(done, total);
  }
}

}  // namespace attune
