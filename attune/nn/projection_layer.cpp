#include "attune/nn/projection_layer.h"

#include <algorithm>

namespace attune {

// Packed weights alone: the logits that decoding would see, for so many rows at a time.
CrossEntropy ProjectionLayer::panel_loss(const Tensor& x, const Indices& labels,
                                         const CrossEntropyOptions& options) const {
  constexpr int64_t kRows = 256;
  CrossEntropyOptions of_piece = options;
  if (options.scale == 0) {
    const auto all = labels.values();
    const auto taking_part = std::ssize(all) - std::count(all.begin(), all.end(), options.ignore_index);
    of_piece.scale = 1.0 / static_cast<double>(std::max<int64_t>(taking_part, 1));
  }
  CrossEntropy sum{.loss = Tensor::zeros({}, {x.dtype(), x.device()})};
  for (int64_t begin = 0; begin < x.size(0); begin += kRows) {
    const int64_t end = std::min(begin + kRows, x.size(0));
    const CrossEntropy piece = cross_entropy((*this)(x.rows(begin, end)), labels.slice(begin, end), of_piece);
    add_in_place(sum.loss, piece.loss);
    sum.sum_negative_log_likelihood += piece.sum_negative_log_likelihood;
    sum.labels += piece.labels;
    sum.correct += piece.correct;
  }
  return sum;
}

}  // namespace attune
