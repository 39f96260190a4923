#include "attune/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attune/autograd/graph.h"
#include "attune/data/batch_sampler.h"
#include "attune/train/batch_loss.h"

namespace attune {

CorpusLoss evaluate(Transformer& model, std::span<const ParallelExample> examples, int32_t bos_id,
                    const EvaluateOptions& options) {
  if (examples.empty()) fail<DataError>("evaluate: there is no sentence pair");
  const NoGrad no_grad;
  set_evaluation(model);
  const BatchSampler sampler(lengths_of(examples), {.max_tokens = options.batch_tokens, .shuffle = false});
  CorpusLoss total;
  double correct = 0;
  for (const std::vector<int32_t>& indices : sampler.epoch(0)) {
    const PackedBatch batch = pack(examples, indices, bos_id);
    const CrossEntropy result = batch_loss(model, batch, {.label_smoothing = options.label_smoothing, .scale = 1});
    total.loss += result.loss.item();
    total.nll += result.sum_negative_log_likelihood;
    total.tokens += result.labels;
    correct += static_cast<double>(result.correct);
  }
  const auto tokens = static_cast<double>(total.tokens);
  total.loss /= tokens;
  total.nll /= tokens;
  total.accuracy = correct / tokens;
  total.perplexity = std::exp(total.nll);
  return total;
}

}  // namespace attune
