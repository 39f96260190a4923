#include "attune/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/tensor/host_view.h"
#include "attune/train/batch_loss.h"

namespace attune {
namespace {

void without_dropout_and_gradients(Execution& e) {
  e.dropout.reset();
  e.recording = false;
}

// The batches of a text, of which each of n ranks has every n-th. What they give is put together in their order, so
// that the result does not depend on n.
class SharedBatches {
 public:
  explicit SharedBatches(const EvaluateOptions& options)
      : ranks_(options.ranks != nullptr ? *options.ranks : alone_),
        interrupt_(options.interrupt),
        loss_{.label_smoothing = options.label_smoothing, .scale = 1} {}

  /// With these, the loss of a batch is a sum and not a mean.
  const CrossEntropyOptions& options() const { return loss_; }

  /// Returns the mean over all batches. measure(i) returns the cross entropy of batch i, or nothing; it is called for
  /// the batches of this rank. Throws Interrupted when any rank was interrupted.
  template <class Measure>
  CorpusLoss mean(size_t batches, Measure&& measure) {
    std::vector<double> sums(kNumbers * batches + 1);  // 0 where another rank has the number: x + 0 is x
    const auto size = static_cast<size_t>(ranks_.size());
    for (auto i = static_cast<size_t>(ranks_.rank()); i < batches && !is_interrupted(); i += size)
      if (const std::optional<CrossEntropy> batch = measure(i)) write(*batch, std::span(sums).subspan(kNumbers * i));
    sums.back() = is_interrupted() ? 1 : 0;
    gather(sums);
    if (sums.back() > 0) throw Interrupted();
    sums.pop_back();
    return mean_of(sums);
  }

  /// Gives every rank all numbers. Each number is known to one rank, and is 0 on the others.
  template <class T>
  void gather(std::vector<T>& numbers) {
    ranks_.all_reduce(std::span(numbers));
  }

 private:
  static constexpr size_t kNumbers = 4;  // of a batch

  bool is_interrupted() const { return interrupt_ != nullptr && interrupt_->load(); }

  // Waits once for the device of the batch.
  static void write(const CrossEntropy& batch, std::span<double> to) {
    const std::vector<double> numbers = host_values<double>(
        joined_numbers({batch.loss, batch.sum_negative_log_likelihood, batch.correct}, batch.loss.device()));
    to[0] = numbers[0];
    to[1] = numbers[1];
    to[2] = static_cast<double>(batch.labels);
    to[3] = numbers[2];
  }

  static CorpusLoss mean_of(std::span<const double> sums) {
    CorpusLoss mean;
    double tokens = 0, correct = 0;
    for (size_t i = 0; i < sums.size(); i += kNumbers) {
      mean.loss += sums[i];
      mean.nll += sums[i + 1];
      tokens += sums[i + 2];
      correct += sums[i + 3];
    }
    if (tokens == 0) return {};
    mean.tokens = static_cast<int64_t>(tokens);
    mean.loss /= tokens;
    mean.nll /= tokens;
    mean.accuracy = correct / tokens;
    mean.perplexity = std::exp(mean.nll);
    return mean;
  }

  LocalCommunicator alone_;
  Communicator& ranks_;
  const std::atomic<bool>* interrupt_;
  CrossEntropyOptions loss_;
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

// The first sequence of each batch, as many as a batch may have, and the number of all sequences.
std::vector<size_t> first_sequences(const MaskedBatch& text, int64_t batch_tokens) {
  std::vector<size_t> first = {0};
  while (first.back() + 1 < text.offsets.size()) {
    size_t end = first.back() + 1;
    while (end + 1 < text.offsets.size() && text.offsets[end + 1] - text.offsets[first.back()] <= batch_tokens) ++end;
    first.push_back(end);
  }
  return first;
}

// The mean squared error over the texts that have a number.
CorpusLoss loss_of_numbers(std::span<const LabelledExample> examples, std::span<const double> found) {
  CorpusLoss loss;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].label < 0) continue;
    const double error = found[i] - examples[i].value;
    loss.loss += error * error;
    ++loss.tokens;
  }
  if (loss.tokens > 0) loss.loss /= static_cast<double>(loss.tokens);
  return loss;
}

// Returns measure(batch). With options.place, throws NumericError naming the first example whose own loss is not
// finite. number_of(part) is the number of the example that a part of the batch is from.
template <class Part, class Measure, class NumberOf>
CrossEntropy measured(std::span<const Part> batch, const EvaluateOptions& options, const Measure& measure,
                      const NumberOf& number_of) {
  const auto is_finite = [](const CrossEntropy& found) {
    return std::isfinite(found.sum_negative_log_likelihood.item());
  };
  CrossEntropy whole = measure(batch);
  if (!options.place || is_finite(whole)) return whole;
  size_t i = 0;
  while (i + 1 < batch.size() && is_finite(measure(batch.subspan(i, 1)))) ++i;
  fail<NumericError>("{}: the loss is not finite", options.place(number_of(batch[i])));
}

void check_finite(std::span<const float> logits, const EvaluateOptions& options, size_t example) {
  if (!options.place) return;
  for (const float logit : logits)
    if (!std::isfinite(logit)) fail<NumericError>("{}: a label's logit is {}", options.place(example), logit);
}

// Sequences [first, last).
MaskedBatch take_batch(const MaskedBatch& text, size_t first, size_t last) {
  const int32_t begin = text.offsets[first], end = text.offsets[last];
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
  const auto batches = batches_in_order(lengths_of(examples), options);
  SharedBatches shared(options);
  const auto measure = [&](std::span<const int32_t> pairs) {
    return batch_loss(model, pack(examples, pairs, bos_id), shared.options());
  };
  const auto number_of = [](int32_t pair) { return static_cast<size_t>(pair); };
  return shared.mean(batches.size(), [&](size_t i) {
    return std::optional(measured(std::span<const int32_t>(batches[i]), options, measure, number_of));
  });
}

ClassifierEvaluation evaluate(const EncoderClassifier& model, std::span<const LabelledExample> examples,
                              const EvaluateOptions& options) {
  if (examples.empty()) fail<DataError>("evaluate: there is no text");
  const bool regression = model.config().is_regression();
  if (regression && model.config().labels.size() != 1)
    fail<ConfigError>("evaluate: the model gives a text {} numbers, regressions with one are measured",
                      model.config().labels.size());
  const ExecutionScope scope(without_dropout_and_gradients);
  const auto batches = batches_in_order(lengths_of(examples), options);
  const size_t labels = model.config().labels.size();
  std::vector<double> found(examples.size());
  SharedBatches shared(options);
  ClassifierEvaluation result;
  result.loss = shared.mean(batches.size(), [&](size_t i) -> std::optional<CrossEntropy> {
    const LabelledBatch batch = pack(examples, batches[i]);
    const Tensor logits = model(packed_texts(batch, model.config())).to(Cpu{});  // few; the loss is formed there too
    const HostView view(logits);
    const auto first = static_cast<size_t>(batches[i].front());  // batches are in the order of the examples
    for (size_t text = 0; text < batch.labels.size(); ++text) {
      const auto row = view.as<float>().subspan(text * labels, labels);
      check_finite(row, options, first + text);
      found[first + text] = regression ? static_cast<double>(row.front())
                                       : static_cast<double>(std::ranges::max_element(row) - row.begin());
    }
    if (regression || std::ranges::none_of(batch.labels, [](int32_t label) { return label >= 0; })) return std::nullopt;
    return cross_entropy(logits, Indices(batch.labels), shared.options());
  });
  shared.gather(found);
  if (regression) {
    result.values.assign(found.begin(), found.end());
    result.loss = loss_of_numbers(examples, found);
  } else {
    result.predictions.assign(found.begin(), found.end());
  }
  return result;
}

CorpusLoss evaluate(const DecoderLm& model, const TokenDocuments& documents, int64_t stride,
                    const EvaluateOptions& options) {
  const int64_t context = model.config().context_length;
  const std::vector<ScoredWindow> windows = sliding_windows(documents, context, stride > 0 ? stride : context);
  if (windows.empty()) fail<DataError>("evaluate: there is no token to predict");
  const ExecutionScope scope(without_dropout_and_gradients);
  const auto batches = batches_of(windows, options.batch_tokens);
  SharedBatches shared(options);
  const auto measure = [&](std::span<const ScoredWindow> of_batch) {
    return batch_loss(model, pack(documents, of_batch, shared.options().ignore_index), shared.options());
  };
  const auto number_of = [&](const ScoredWindow& window) {  // of the document
    const auto after = std::ranges::upper_bound(documents.offsets, window.begin);
    return static_cast<size_t>(after - documents.offsets.begin()) - 1;
  };
  return shared.mean(batches.size(),
                     [&](size_t i) { return std::optional(measured(batches[i], options, measure, number_of)); });
}

CorpusLoss evaluate(const EncoderMaskedLm& model, const MaskedBatch& text, const EvaluateOptions& options) {
  if (text.rows.empty()) fail<DataError>("evaluate: there is no hidden token");
  const ExecutionScope scope(without_dropout_and_gradients);
  const std::vector<size_t> first = first_sequences(text, options.batch_tokens);
  SharedBatches shared(options);
  return shared.mean(first.size() - 1, [&](size_t i) -> std::optional<CrossEntropy> {
    const MaskedBatch batch = take_batch(text, first[i], first[i + 1]);
    if (batch.rows.empty()) return std::nullopt;
    return batch_loss(model, batch, shared.options());
  });
}

}  // namespace attune
