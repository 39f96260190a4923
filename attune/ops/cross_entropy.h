#pragma once

#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

struct CrossEntropyOptions {
  double label_smoothing = 0;  // epsilon, in [0, 1]
  int32_t ignore_index = -1;   // rows with this label are ignored
  double scale = 0;            // factor of the summed loss; 0: 1 / number of labels that are not ignored
  /// R-Drop's alpha; above 0, rows i and i + n / 2 are two predictions of one label, with other dropout, and the loss
  /// brings them together: each pair adds alpha / 2 (KL(p || q) + KL(q || p)) to the sum of losses, with p and q their
  /// distributions. Source: Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", section 2.1.
  double r_drop = 0;
};

/// The factor of the summed loss: options.scale, or 1 / number of labels that are not ignored.
double loss_scale(const Indices& labels, const CrossEntropyOptions& options);

/// The tensors are scalars on the device of the inputs. The host does not wait for it until Tensor::item() reads one.
/// Without r_drop, sum_divergence may be undefined.
struct CrossEntropy {
  Tensor loss = {};                         // differentiable, smoothed, scaled; in the dtype of the inputs
  Tensor sum_negative_log_likelihood = {};  // float64; neither smoothed nor scaled
  int64_t labels = 0;                       // how many labels are not ignored
  Tensor correct = {};                      // float64: how many labels are the (first) largest logit of their row
  Tensor sum_divergence = {};               // float64: KL(p || q) + KL(q || p) of all pairs of r_drop
  Tensor guided_loss = {};                  // the part of `loss` of guided attention; undefined without it
};

/// scale * sum over rows of (1 - epsilon) * -log p[label] + epsilon * mean over all classes of -log p, with
/// p = softmax(logits); label smoothing as in Szegedy et al. 2016, section 7.
///   logits [n, vocabulary]   labels [n]
/// Differentiable in logits. The gradient reads its cotangent on the host: on the CPU it is there at once, and a device
/// is waited for. Throws ShapeError, ConfigError, and DataError for a label outside the vocabulary or, with r_drop, one
/// that is not the same for both rows of a pair.
CrossEntropy cross_entropy(const Tensor& logits, const Indices& labels, const CrossEntropyOptions& options = {});

/// cross_entropy(x weight^T + bias, labels), computed in pieces of rows: the logits of a whole batch are never stored.
/// When recording, the gradients of a piece are computed together with its loss.
///   x [n, d]   weight [vocabulary, d]   bias [vocabulary] or undefined   labels [n]
/// Differentiable in x, weight and bias as cross_entropy() is in logits. If bfloat16_products(), float32 inputs and the
/// gradient of the logits are rounded to bfloat16 for the products; the logits are float32. A bfloat16 weight is read
/// as linear() reads it, and must not need a gradient. Throws as cross_entropy() does.
CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Indices& labels,
                                  const CrossEntropyOptions& options = {});

}  // namespace attune
