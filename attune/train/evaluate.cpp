#include "attune/train/evaluate.h"

#include <algorithm>
#include <cmath>

#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/ops/softmax.h"
#include "attune/tensor/host_view.h"
#include "attune/train/batch_loss.h"

namespace attune {
namespace {

void without_dropout_and_gradients(Execution& e) {
  e.dropout.reset();
  e.recording = false;
}

// The mean over everything that is added up.
class MeanLoss {
 public:
  explicit MeanLoss(double label_smoothing) : options_{.label_smoothing = label_smoothing, .scale = 1} {}
  /// For sums rather than means of batches.
  const CrossEntropyOptions& options() const { return options_; }

  void add(const CrossEntropy& batch) {
    sum_.loss += batch.loss.item();
    sum_.nll += batch.sum_negative_log_likelihood;
    sum_.tokens += batch.labels;
    correct_ += static_cast<double>(batch.correct);
  }

  CorpusLoss mean() const {
    if (sum_.tokens == 0) return {};
    CorpusLoss mean = sum_;
    const auto tokens = static_cast<double>(sum_.tokens);
    mean.loss /= tokens;
    mean.nll /= tokens;
    mean.accuracy = correct_ / tokens;
    mean.perplexity = std::exp(mean.nll);
    return mean;
  }

 private:
  CrossEntropyOptions options_;
  CorpusLoss sum_;
  double correct_ = 0;
};

// Batches in the order of the examples.
std::vector<std::vector<int32_t>> batches_in_order(std::vector<std::pair<int32_t, int32_t>> lengths,
                                                   const EvaluateOptions& options) {
  return BatchSampler(std::move(lengths), {.max_tokens = options.batch_tokens, .shuffle = false}).epoch(0);
}

// Neighbouring windows, as many as a batch may have.
std::vector<std::span<const ScoredWindow>> batches_of(std::span<const ScoredWindow> windows, int64_t batch_tokens) {
  std::vector<std::span<const ScoredWindow>> batches;
  for (size_t begin = 0; begin < windows.size();) {
    size_t end = begin;
    for (int64_t tokens = 0; end < windows.size(); ++end) {
      tokens += windows[end].length;
      if (end > begin && tokens > batch_tokens) break;
    }
    batches.push_back(windows.subspan(begin, end - begin));
    begin = end;
  }
  return batches;
}

// Sequences from `first` on, as many as a batch may have.
MaskedBatch take_batch(const MaskedBatch& text, size_t first, int64_t batch_tokens) {
  const int32_t begin = text.offsets[first];
  size_t last = first + 1;
  while (last + 1 < text.offsets.size() && text.offsets[last + 1] - begin <= batch_tokens) ++last;
  const int32_t end = text.offsets[last];
  MaskedBatch batch;
  batch.tokens.assign(text.tokens.begin() + begin, text.tokens.begin() + end);
  for (size_t i = first; i <= last; ++i) batch.offsets.push_back(text.offsets[i] - begin);
  auto row = static_cast<size_t>(std::ranges::lower_bound(text.rows, begin) - text.rows.begin());
  for (; row < text.rows.size() && text.rows[row] < end; ++row) {
    batch.rows.push_back(text.rows[row] - begin);
    batch.labels.push_back(text.labels[row]);
  }
  return batch;
}

}  // namespace

CorpusLoss evaluate(const Transformer& model, std::span<const ParallelExample> examples, int32_t bos_id,
                    const EvaluateOptions& options) {
  if (examples.empty()) fail<DataError>("evaluate: there is no sentence pair");
  const ExecutionScope scope(without_dropout_and_gradients);
  MeanLoss total(options.label_smoothing);
  for (const std::vector<int32_t>& indices : batches_in_order(lengths_of(examples), options)) {
    check_interrupt(options.interrupt);
    total.add(batch_loss(model, pack(examples, indices, bos_id), total.options()));
  }
  return total.mean();
}

ClassifierEvaluation evaluate(const EncoderClassifier& model, std::span<const LabelledExample> examples,
                              const EvaluateOptions& options) {
  if (examples.empty()) fail<DataError>("evaluate: there is no text");
  const ExecutionScope scope(without_dropout_and_gradients);
  MeanLoss total(options.label_smoothing);
  ClassifierEvaluation result;
  for (const std::vector<int32_t>& indices : batches_in_order(lengths_of(examples), options)) {
    check_interrupt(options.interrupt);
    const LabelledBatch batch = pack(examples, indices);
    const Tensor logits = model(pack_tokens(batch.tokens, batch.offsets));
    if (std::ranges::any_of(batch.labels, [](int32_t label) { return label >= 0; }))
      total.add(cross_entropy(logits, Indices(batch.labels), total.options()));
    const HostView view(softmax(logits));
    const auto probabilities = view.as<float>();
    const auto labels = static_cast<size_t>(logits.size(1));
    for (int64_t text = 0; text < batch.texts(); ++text) {
      const auto row = probabilities.subspan(static_cast<size_t>(text) * labels, labels);
      result.predictions.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
      result.probabilities.insert(result.probabilities.end(), row.begin(), row.end());
    }
  }
  result.loss = total.mean();
  return result;
}

CorpusLoss evaluate(const DecoderLm& model, const TokenDocuments& documents, int64_t stride,
                    const EvaluateOptions& options) {
  const int64_t context = model.config().context_length;
  const std::vector<ScoredWindow> windows = sliding_windows(documents, context, stride > 0 ? stride : context);
  if (windows.empty()) fail<DataError>("evaluate: there is no token to predict");
  const ExecutionScope scope(without_dropout_and_gradients);
  MeanLoss total(options.label_smoothing);
  for (const std::span<const ScoredWindow> batch : batches_of(windows, options.batch_tokens)) {
    check_interrupt(options.interrupt);
    total.add(batch_loss(model, pack(documents, batch, total.options().ignore_index), total.options()));
  }
  return total.mean();
}

CorpusLoss evaluate(const EncoderMaskedLm& model, const MaskedBatch& text, const EvaluateOptions& options) {
  if (text.rows.empty()) fail<DataError>("evaluate: there is no hidden token");
  const ExecutionScope scope(without_dropout_and_gradients);
  MeanLoss total(options.label_smoothing);
  for (size_t sequence = 0; sequence + 1 < text.offsets.size();) {
    check_interrupt(options.interrupt);
    const MaskedBatch batch = take_batch(text, sequence, options.batch_tokens);
    sequence += batch.offsets.size() - 1;
    if (!batch.rows.empty()) total.add(batch_loss(model, batch, total.options()));
  }
  return total.mean();
}

}  // namespace attune
