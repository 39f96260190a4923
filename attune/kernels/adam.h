#pragma once

#include <cstdint>

#include "attune/tensor/device.h"

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

/// One pass over n elements: parameter -= learning_rate * m^ / (sqrt(v^) + epsilon) with m^ = m / bias_correction_1 and
/// v^ = v / bias_correction_2; then, unless it is null, average = ema_decay * average + (1 - ema_decay) * parameter.
void adam_step(Cpu, float* parameter, const float* gradient, float* m, float* v, float* average, double ema_decay,
               int64_t n, const AdamStepArguments& arguments);
void adam_step(Cpu, double* parameter, const double* gradient, double* m, double* v, double* average, double ema_decay,
               int64_t n, const AdamStepArguments& arguments);

}  // namespace attune
