#include "attune/ops/balance_loss.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/balance_loss.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {

Tensor balance_loss(const Tensor& scores, std::span<const int64_t> counts) {
  constexpr const char* op = "balance_loss";
  const ProfileScope scope(op);
  check_rows(op, scores);
  const auto experts = static_cast<int64_t>(counts.size());
  if (scores.rank() != 2 || scores.size(1) != experts)
    fail<ShapeError>("{}: {} counts for scores {}", op, experts, scores.shape().text());
  const auto all = static_cast<double>(std::max<int64_t>(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 1));
  std::vector<double> values;
  for (const int64_t count : counts) values.push_back(static_cast<double>(experts * count) / all);
  const Tensor shares = Tensor::from({experts}, values).to(scores.dtype()).to(scores.device());
  const Tensor loss = Tensor::empty({1}, {DType::f64, scores.device()});
  dispatch(scores.device(), [&](auto device) { balance_loss_forward(device, scores, shares, loss); });
  Tensor y = loss.to(scores.dtype()).reshape({});
  record(op, {scores}, y, [scores = scores.detach(), shares](const Tensor& dy) {
    Tensor d_scores = Tensor::empty_like(scores);
    dispatch(scores.device(), [&](auto device) { balance_loss_backward(device, scores, shares, dy.item(), d_scores); });
    return Gradients{d_scores};
  });
  return y;
}

Tensor with_loss(const Tensor& x, const Tensor& loss, double scale) {
  if (loss.numel() != 1) fail<ShapeError>("with_loss: needs a scalar, found {}", loss.shape().text());
  Tensor y = x.detach();
  record("with_loss", {x, loss}, y, [scale, shape = loss.shape(), dtype = loss.dtype()](const Tensor& dy) {
    return Gradients{dy, Tensor::full(shape, scale, {.dtype = dtype})};  // on the CPU, where a loss reads it
  });
  return y;
}

}  // namespace attune
