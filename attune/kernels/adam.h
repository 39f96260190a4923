#pragma once

#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// Numbers of one step of Adam (Kingma & Ba 2015) or AdamW (Loshchilov & Hutter 2019).
struct AdamStepArguments {
  double learning_rate = 0;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;       // decoupled: parameter *= 1 - learning_rate * weight_decay
  double l2 = 0;                 // gradient += l2 * parameter
  double gradient_scale = 1;     // multiplies the gradient before all else (clipping)
  double bias_correction_1 = 1;  // 1 - beta_1^t
  double bias_correction_2 = 1;  // 1 - beta_2^t
};

/// The tensors that a step of one parameter reads and writes: all have the same number of elements and the same dtype.
struct AdamTensors {
  const Tensor& parameter;
  const Tensor& gradient;
  const Tensor& m;
  const Tensor& v;
  const Tensor& average;  // or undefined
};

/// One pass over the elements: parameter -= learning_rate * m^ / (sqrt(v^) + epsilon) with m^ = m / bias_correction_1
/// and v^ = v / bias_correction_2; then, unless it is undefined, average = ema_decay * average + (1 - ema_decay) *
/// parameter.
void adam_step(Cpu, const AdamTensors& tensors, double ema_decay, const AdamStepArguments& arguments);
void adam_step(Plain, const AdamTensors& tensors, double ema_decay, const AdamStepArguments& arguments);

/// A parameter of adam_steps(): the tensors of AdamTensors, and its own decay in place of that of the arguments.
struct AdamUpdate {
  Tensor parameter, gradient, m, v, average;
  double weight_decay = 0, l2 = 0;
};

/// Numbers on the device of the parameters that decide about a step, so that the host need not know them before it.
struct AdamCondition {
  Tensor numbers;  // [n], float64; the first is the sum of the squares of all gradients, the norm is its square root
  double clip_norm = 0;  // where the norm is larger than this, gradients are multiplied by clip_norm / norm; 0: never
};

/// If all of condition.numbers are finite, adam_step() of several parameters of one dtype, with the gradient_scale that
/// clip_norm asks for in place of that of the arguments; else nothing.
void adam_steps(Cpu, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& arguments);
void adam_steps(Plain, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& arguments);
void adam_steps(Cuda, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& arguments);

}  // namespace attune
