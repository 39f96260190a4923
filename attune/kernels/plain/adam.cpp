#include "attune/kernels/adam.h"

#include <cmath>

namespace attune {

void adam_step(Plain, const AdamTensors& t, double ema_decay, const AdamStepArguments& a) {
  dispatch_floating("adam", t.parameter.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < t.parameter.numel(); ++i) {
      T& parameter = t.parameter.data<T>()[i];
      T& m = t.m.data<T>()[i];
      T& v = t.v.data<T>()[i];
      const double g = a.l2 * parameter + t.gradient.data<T>()[i] * a.gradient_scale;
      m = static_cast<T>(a.beta_1 * m + (1 - a.beta_1) * g);
      v = static_cast<T>(a.beta_2 * v + (1 - a.beta_2) * g * g);
      const double root = std::sqrt(v / a.bias_correction_2) + a.epsilon;
      parameter = static_cast<T>(parameter * (1 - a.learning_rate * a.weight_decay) -
                                 a.learning_rate * (m / a.bias_correction_1) / root);
      if (t.average.defined()) {
        T& average = t.average.data<T>()[i];
        average = static_cast<T>(ema_decay * average + (1 - ema_decay) * parameter);
      }
    }
  });
}

}  // namespace attune
