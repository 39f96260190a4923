#pragma once
// How well a model predicts given text.

#include <cstdint>
#include <span>

#include "attune/data/parallel_corpus.h"
#include "attune/models/transformer.h"

namespace attune {

struct CorpusLoss {
  double loss = 0;        // label-smoothed cross entropy per target token, nats
  double nll = 0;         // negative log likelihood per target token, nats; eos counts as a token
  double perplexity = 0;  // exp(nll)
  double accuracy = 0;    // share of tokens that are the likeliest, in [0, 1]
  int64_t tokens = 0;     // of the target
};

struct EvaluateOptions {
  int64_t batch_tokens = 4096;  // source or target tokens of a batch
  double label_smoothing = 0;   // of CorpusLoss::loss
};

/// Teacher-forced loss over all examples; takes the model into evaluation mode. `bos_id` begins the decoder's input.
/// Throws DataError when there is no example.
CorpusLoss evaluate(Transformer& model, std::span<const ParallelExample> examples, int32_t bos_id,
                    const EvaluateOptions& options = {});

}  // namespace attune
