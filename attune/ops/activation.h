#pragma once

#include "attune/kernels/activation_kind.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// Applies the function below that `activation` names; returns x itself for Activation::none.
Tensor activated(const Tensor& x, Activation activation);

/// max(0, x). Any shape; differentiable, with gradient 0 at 0. Keeps its output for the backward pass.
Tensor relu(const Tensor& x);

/// x Phi(x) = x (1 + erf(x / sqrt(2))) / 2, Hendrycks & Gimpel 2016. Any shape; differentiable.
Tensor gelu(const Tensor& x);

/// The approximation of gelu x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, same source. Any shape; differentiable.
Tensor gelu_tanh(const Tensor& x);

/// The coarser approximation of gelu x sigmoid(1.702 x), same source. Any shape; differentiable.
Tensor gelu_sigmoid(const Tensor& x);

/// x sigmoid(x), Hendrycks & Gimpel 2016; called Swish by Ramachandran et al. 2017. Any shape; differentiable.
Tensor silu(const Tensor& x);

/// (e^x - e^-x) / (e^x + e^-x). Any shape; differentiable.
Tensor tanh(const Tensor& x);

}  // namespace attune
