#pragma once

#include "attune/tensor/tensor.h"

namespace attune {

/// loss = the mean over tokens t of the sum over experts e of shares[e] scores[t, e] / (the sum of scores[t]).
///   scores [tokens, experts], shares [experts]; float32 or float64   loss [1], float64
void balance_loss_forward(Cpu, const Tensor& scores, const Tensor& shares, const Tensor& loss);
void balance_loss_forward(Plain, const Tensor& scores, const Tensor& shares, const Tensor& loss);
void balance_loss_forward(Cuda, const Tensor& scores, const Tensor& shares, const Tensor& loss);

/// d_scores = factor * d(loss) / d(scores), shaped like scores.
void balance_loss_backward(Cpu, const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores);
void balance_loss_backward(Plain, const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores);
void balance_loss_backward(Cuda, const Tensor& scores, const Tensor& shares, double factor, const Tensor& d_scores);

}  // namespace attune
