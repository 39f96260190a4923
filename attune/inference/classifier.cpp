#include "attune/inference/classifier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/batches.h"
#include "attune/inference/encoder_text.h"
#include "attune/inference/text_limits.h"
#include "attune/nn/make_panels.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// The softmax of a row of logits.
std::vector<LabelProbability> ranked(std::span<const float> logits) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) {
    if (!std::isfinite(logit)) fail<NumericError>("a label's logit is {}", logit);
    largest = std::max(largest, static_cast<double>(logit));
  }
  std::vector<LabelProbability> labels;
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    labels.push_back({static_cast<int32_t>(i), std::exp(static_cast<double>(logits[i]) - largest)});
    sum += labels.back().probability;
  }
  for (LabelProbability& l : labels) l.probability /= sum;
  std::stable_sort(labels.begin(), labels.end(),
                   [](const LabelProbability& a, const LabelProbability& b) { return a.probability > b.probability; });
  return labels;
}

void check_least(const char* field, int64_t value, int64_t least) {
  if (value < least) fail<ConfigError>("{} = {}: needs a number from {}", field, value, least);
}

}  // namespace

Classifier::Classifier(ClassifierFolder files)
    : tokenizer_(std::move(files.tokenizer)),
      max_tokens_(files.max_tokens),
      tokenizer_frames_texts_(files.tokenizer_frames_texts) {
  check_vocabulary(files.model->config(), *tokenizer_, vocabulary_size(tokenizer_frames_texts_));
  ensure_panels(*files.model);
  model_ = std::move(files.model);
}

Classifier Classifier::load(const std::filesystem::path& folder) {
  return Classifier(open_classifier_folder(folder, LoadedWeights::panels));
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

std::vector<Classification> Classifier::classify(std::span<const std::string> texts,
                                                 const ClassifyOptions& options) const {
  TokenSequences ids;
  std::vector<int64_t> cut;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], "text " + std::to_string(i + 1));
    EncoderText text = encode_for_encoder(*tokenizer_, tokenizer_frames_texts_, texts[i], longest(options));
    ids.push_back(std::move(text.tokens));
    cut.push_back(text.cut);
  }
  std::vector<Classification> results = classify_tokens(ids, options);
  for (size_t i = 0; i < texts.size(); ++i) results[i].cut_tokens = cut[i];
  return results;
}

std::vector<int32_t> Classifier::encode(std::string_view text, const ClassifyOptions& options) const {
  check_text(text, "text");
  return encode_for_encoder(*tokenizer_, tokenizer_frames_texts_, text, longest(options)).tokens;
}

int64_t Classifier::longest(const ClassifyOptions& options) const {
  const int64_t max_tokens = options.max_tokens.value_or(max_tokens_);
  check_least("max_tokens", max_tokens, 2);
  const int64_t longest = std::min(max_tokens, model_->config().longest_sequence());
  check_least("positions.max_length", longest, 2);
  return longest;
}

std::vector<Classification> Classifier::classify_tokens(const std::vector<std::vector<int32_t>>& ids,
                                                        const ClassifyOptions& options) const {
  check_least("batch_texts", options.batch_texts, 1);
  check_least("batch_tokens", options.batch_tokens, 1);
  std::vector<Classification> results(ids.size());
  const NoGrad no_grad;
  int64_t done = 0;
  for (const std::vector<size_t>& batch : batches_by_length(ids, options.batch_texts, options.batch_tokens)) {
    check_interrupt(options.interrupt);
    const Tensor logits = (*model_)(pack_batch(ids, batch));
    const HostView view(logits);
    const auto labels = static_cast<size_t>(logits.size(1));
    for (size_t i = 0; i < batch.size(); ++i) {
      try {
        results[batch[i]].labels = ranked(view.as<float>().subspan(i * labels, labels));
      } catch (const NumericError& error) {
        if (!options.skip) fail<NumericError>("text {}: {}", batch[i] + 1, error.what());
        options.skip(batch[i], error.what());
      }
    }
    done += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(done, static_cast<int64_t>(ids.size()));
  }
  return results;
}

}  // namespace attune
