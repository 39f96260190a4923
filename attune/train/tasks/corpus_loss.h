#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

/// How well a model predicts a text. A regression has `loss` and `tokens` alone.
struct CorpusLoss {
  double loss = 0;        // label-smoothed cross entropy per prediction, nats; of a regression the mean squared error
  double nll = 0;         // negative log likelihood per prediction, nats; eos counts as a token
  double perplexity = 0;  // exp(nll)
  double accuracy = 0;    // share of predictions whose label is the likeliest, in [0, 1]
  int64_t tokens = 0;     // predictions: tokens of the target, next tokens, hidden tokens, or labels of texts
};

}  // namespace attune
