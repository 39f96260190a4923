#pragma once
// How well a model predicts given text. The functions run without dropout and record no gradients. How texts are put
// together in batches does not change what is predicted.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attune/data/labelled_corpus.h"
#include "attune/data/masking.h"
#include "attune/data/parallel_corpus.h"
#include "attune/data/text_stream.h"
#include "attune/dist/communicator.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "attune/train/tasks/corpus_loss.h"

namespace attune {

struct EvaluateOptions {
  int64_t batch_tokens = 4096;                   // of a batch; of the source or the target
  double label_smoothing = 0;                    // of CorpusLoss::loss
  const std::atomic<bool>* interrupt = nullptr;  // once true, evaluate() throws Interrupted; on one rank: on all
  /// The ranks that share the batches. Each calls evaluate() with the same arguments and gets the result of one
  /// process, bit for bit. Null: this process evaluates all batches.
  Communicator* ranks = nullptr;
  /// Returns where an example or a document comes from, for messages; they are counted from 0. With this function,
  /// evaluate() throws NumericError naming the first one for which the model's numbers are not finite, except for
  /// masked tokens. Not for several ranks. Without it, the result is then not finite either.
  std::function<std::string(size_t example)> place = {};
};

/// Teacher-forced loss over all examples. `bos_id` begins the decoder's input. Throws DataError when there is no
/// example.
CorpusLoss evaluate(const Transformer& model, std::span<const ParallelExample> examples, int32_t bos_id,
                    const EvaluateOptions& options = {});

struct ClassifierEvaluation {
  CorpusLoss loss;                   // over the texts that have a label, or a number
  std::vector<int32_t> predictions;  // [texts], the likeliest label
  std::vector<float> values;         // of a regression, in place of labels: [texts], the number
};

/// Predicts the labels of all examples, or their numbers; some or all of them may have none of their own. Throws
/// DataError when there is no example, and ConfigError for a regression with several numbers.
ClassifierEvaluation evaluate(const EncoderClassifier& model, std::span<const LabelledExample> examples,
                              const EvaluateOptions& options = {});

/// Loss over every token but the first of each document, in windows of the model's context_length that advance by
/// `stride`, see sliding_windows(); 0: by context_length. Throws DataError when there is nothing to predict.
CorpusLoss evaluate(const DecoderLm& model, const TokenDocuments& documents, int64_t stride = 0,
                    const EvaluateOptions& options = {});

/// Loss over the tokens that are hidden in `text`. It has all sequences, masked at once, so that batches do not change
/// which tokens are hidden. Throws DataError when none is hidden.
CorpusLoss evaluate(const EncoderMaskedLm& model, const MaskedBatch& text, const EvaluateOptions& options = {});

}  // namespace attune
