#include "attune/kernels/balance_loss.h"

#include <algorithm>

// Simple loops that serve every device whose memory can be read with pointers.

namespace attune {
namespace {

constexpr double kLeastSum = 1e-20;  // of the scores of a token

// Of one token: the sum of its scores, and that of their products with the shares, divided by it.
struct TokenSums {
  double scores = kLeastSum, products = 0;
};

template <class T>
TokenSums sums_of(const T* scores, const T* shares, int64_t experts) {
  TokenSums sums;
  for (int64_t e = 0; e < experts; ++e) {
    sums.scores += scores[e];
    sums.products += static_cast<double>(scores[e]) * shares[e];
  }
  sums.products /= sums.scores;
  return sums;
}

double balance_of(const Tensor& scores, const Tensor& shares) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  double sum = 0;
  dispatch_floating("balance_loss", scores.dtype(), [&]<class T>(T) {
    for (int64_t t = 0; t < tokens; ++t)
      sum += sums_of(scores.data<T>() + t * experts, shares.data<T>(), experts).products;
  });
  return sum / static_cast<double>(std::max<int64_t>(tokens, 1));
}

void balance_gradient(const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  dispatch_floating("balance_loss", scores.dtype(), [&]<class T>(T) {
    for (int64_t t = 0; t < tokens; ++t) {
      const TokenSums sums = sums_of(scores.data<T>() + t * experts, shares.data<T>(), experts);
      const double scale = factor / (static_cast<double>(tokens) * sums.scores);
      for (int64_t e = 0; e < experts; ++e)
        d_scores.data<T>()[t * experts + e] = static_cast<T>(scale * (shares.data<T>()[e] - sums.products));
    }
  });
}

}  // namespace

void balance_loss_forward(Cpu, const Tensor& scores, const Tensor& shares, const Tensor& loss) {
  *loss.data<double>() = balance_of(scores, shares);
}
void balance_loss_forward(Plain, const Tensor& scores, const Tensor& shares, const Tensor& loss) {
  *loss.data<double>() = balance_of(scores, shares);
}
void balance_loss_backward(Cpu, const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores) {
  balance_gradient(scores, shares, factor, d_scores);
}
void balance_loss_backward(Plain, const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores) {
  balance_gradient(scores, shares, factor, d_scores);
}

}  // namespace attune
