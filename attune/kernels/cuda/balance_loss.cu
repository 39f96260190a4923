#include "attune/kernels/balance_loss.h"

#include <algorithm>

#include "attune/kernels/cuda/block_sum.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr double kLeastSum = 1e-20;  // added to the sum of a token's scores, which may be 0
constexpr int kLossThreads = 512;

// Of one token: the sum of its scores, and the sum of scores times shares, divided by the sum of the scores.
struct TokenSums {
  double scores, products;
};

template <class T>
ATTUNE_DEVICE TokenSums sums_of(const T* scores, const T* shares, int64_t experts) {
  TokenSums sums{kLeastSum, 0};
  for (int64_t e = 0; e < experts; ++e) {
    sums.scores += scores[e];
    sums.products += static_cast<double>(scores[e]) * shares[e];
  }
  sums.products /= sums.scores;
  return sums;
}

// One block: a thread adds up every kThreads-th token.
template <class T>
struct BalanceLoss {
  static constexpr int kThreads = kLossThreads;
  const T* scores;
  const T* shares;
  int64_t tokens, experts;
  double* loss;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const double all = cuda::block_sum(
        thread, tokens, [&](int64_t t) { return sums_of(scores + t * experts, shares, experts).products; });
    if (thread.index() == 0) *loss = all / static_cast<double>(tokens > 0 ? tokens : 1);
  }
};

template <class T>
struct BalanceLossGradient {
  const T* scores;
  const T* shares;
  T* d_scores;
  int64_t experts;
  double factor;  // divided by the number of tokens
  ATTUNE_DEVICE void operator()(int64_t t) const {
    const TokenSums sums = sums_of(scores + t * experts, shares, experts);
    for (int64_t e = 0; e < experts; ++e)
      d_scores[t * experts + e] = static_cast<T>(factor / sums.scores * (shares[e] - sums.products));
  }
};

}  // namespace

void balance_loss_forward(Cuda device, const Tensor& scores, const Tensor& shares, const Tensor& loss) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  dispatch_floating("balance_loss", scores.dtype(), [&]<class T>(T) {
    cuda::launch(device, "balance_loss", {.blocks = 1, .threads = cuda::threads_for(tokens, kLossThreads)},
                 BalanceLoss<T>{scores.data<T>(), shares.data<T>(), tokens, experts, loss.data<double>()});
  });
}

void balance_loss_backward(Cuda device, const Tensor& scores, const Tensor& shares, double factor,
                           const Tensor& d_scores) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  dispatch_floating("balance_loss", scores.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "balance_loss", tokens,
                           BalanceLossGradient<T>{scores.data<T>(), shares.data<T>(), d_scores.data<T>(), experts,
                                                  factor / static_cast<double>(std::max<int64_t>(tokens, 1))});
  });
}

}  // namespace attune
