#pragma once

#include "attune/kernels/cross_entropy.h"

namespace attune {

/// Rows i and i + rows / 2 of the logits are two predictions of one label; p and q are their distributions.
struct PredictionPairs {
  CrossEntropyInputs in;  // an even number of rows
  Tensor results;         // of cross_entropy_forward(): [rows, kCrossEntropyNumbers]
  double weight = 0;      // of KL(p || q) + KL(q || p) in the loss of each of the two rows
};

/// Completes the results: sets the divergence of each row and adds that of the pair to the losses. Rows that are
/// ignored keep their zeros.
void pair_divergences(Cpu, const PredictionPairs& pairs);
void pair_divergences(Plain, const PredictionPairs& pairs);
void pair_divergences(Cuda, const PredictionPairs& pairs);

/// d_logits [rows, columns] = scale * the gradient of the sum of losses, from the completed results. d_logits has the
/// dtype of the logits and may be the logits themselves, or it is bfloat16.
void pair_gradients(Cpu, const PredictionPairs& pairs, double scale, const Tensor& d_logits);
void pair_gradients(Plain, const PredictionPairs& pairs, double scale, const Tensor& d_logits);
void pair_gradients(Cuda, const PredictionPairs& pairs, double scale, const Tensor& d_logits);

}  // namespace attune
