#pragma once
// The parts of a search without cache, which tests of searches compare with.

#include <cmath>
#include <set>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/inference/decoding/beam_search.h"

namespace attune {

using Tokens = std::vector<int32_t>;

inline constexpr int32_t kPad = 0, kBos = 2, kEos = 3;

inline BeamSearchOptions options_with(const GenerationConfig& generation, int64_t n_best = 1) {
  BeamSearchOptions options;
  options.generation = generation;
  options.generation.max_length_ratio = 0;
  options.n_best = n_best;
  return options;
}

/// Of the token after bos and `prefix`, as one pass over them gives them.
inline std::vector<double> next_log_probabilities(const Transformer& model, const Tokens& source, const Tokens& prefix,
                                                  const GenerationConfig& generation = {}) {
  const NoGrad no_grad;
  Tokens input = {kBos};
  input.insert(input.end(), prefix.begin(), prefix.end());
  const PackedTokens src = pack_sentences({source});
  const Tensor hidden = model.decode(model.encode(src), src.sequences, pack_sentences({input}));
  const Tensor logits = model.project(hidden.rows(hidden.size(0) - 1, hidden.size(0)));
  std::vector<double> result(logits.values<float>().begin(), logits.values<float>().end());
  const auto penalize = [&] {
    for (const int32_t token : std::set<int32_t>(input.begin(), input.end())) {
      double& x = result[static_cast<size_t>(token)];
      x = x > 0 ? x / generation.repetition_penalty : x * generation.repetition_penalty;
    }
  };
  if (!generation.penalize_log_probabilities) penalize();
  double sum = 0;
  for (const double x : result) sum += std::exp(x);
  for (double& x : result) x -= std::log(sum);
  if (generation.penalize_log_probabilities) penalize();
  return result;
}

}  // namespace attune
