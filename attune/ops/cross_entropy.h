#pragma once

#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct CrossEntropyOptions {
  double label_smoothing = 0;  // epsilon, in [0, 1]
  int32_t ignore_index = -1;   // rows with this label are ignored
  double scale = 0;            // factor of the summed loss; 0: 1 / number of labels that are not ignored
};

struct CrossEntropy {
  Tensor loss;                             // scalar on the CPU, differentiable, smoothed, scaled
  double sum_negative_log_likelihood = 0;  // neither smoothed nor scaled
  int64_t labels = 0;                      // that are not ignored
  int64_t correct = 0;                     // labels that are the (first) largest logit of their row
};

/// scale * sum over rows of (1 - epsilon) * -log p[label] + epsilon * mean over all classes of -log p, with
/// p = softmax(logits); label smoothing as in Szegedy et al. 2016, section 7.
///   logits [n, vocabulary]   labels [n]
/// Differentiable in logits. Throws ShapeError, ConfigError, and DataError for a label outside the vocabulary.
CrossEntropy cross_entropy(const Tensor& logits, const Indices& labels, const CrossEntropyOptions& options = {});

/// cross_entropy(x weight^T + bias, labels), computed in pieces of rows: the logits of a whole batch are never stored.
/// When recording, the gradients are computed together with the loss, while a piece is in the processor's cache.
///   x [n, d]   weight [vocabulary, d]   bias [vocabulary] or undefined   labels [n]
/// Differentiable in x, weight and bias. If bfloat16_products(), float32 inputs and the gradient of the logits are
/// rounded to bfloat16 for the products; the logits are float32.
CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Indices& labels,
                                  const CrossEntropyOptions& options = {});

}  // namespace attune
