#include "attune/kernels/adam.h"

#include <cmath>

#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

// The arguments in the type of the parameters, and products of them that every element needs.
template <class T>
struct Numbers {
  T beta_1, beta_2, epsilon, l2, gradient_scale, keep, rate, root_scale, ema_decay;

  Numbers(const AdamStepArguments& a, double decay)
      : beta_1(static_cast<T>(a.beta_1)),
        beta_2(static_cast<T>(a.beta_2)),
        epsilon(static_cast<T>(a.epsilon)),
        l2(static_cast<T>(a.l2)),
        gradient_scale(static_cast<T>(a.gradient_scale)),
        keep(static_cast<T>(1 - a.learning_rate * a.weight_decay)),
        rate(static_cast<T>(a.learning_rate / a.bias_correction_1)),
        root_scale(static_cast<T>(1 / a.bias_correction_2)),
        ema_decay(static_cast<T>(decay)) {}
};

template <class T>
struct AdamElement {
  T* parameter;
  const T* gradient;
  T* m;
  T* v;
  T* average;  // or null
  Numbers<T> a;

  ATTUNE_DEVICE void operator()(int64_t i) const {
    const T old = parameter[i], g = a.l2 * old + gradient[i] * a.gradient_scale;
    const T first = a.beta_1 * m[i] + (1 - a.beta_1) * g;
    const T second = a.beta_2 * v[i] + (1 - a.beta_2) * g * g;
    const T next = old * a.keep - a.rate * first / (std::sqrt(second * a.root_scale) + a.epsilon);
    m[i] = first;
    v[i] = second;
    parameter[i] = next;
    if (average != nullptr) average[i] = a.ema_decay * average[i] + (1 - a.ema_decay) * next;
  }
};

}  // namespace

void adam_step(Cuda device, const AdamTensors& t, double ema_decay, const AdamStepArguments& a) {
  dispatch_floating("adam", t.parameter.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "adam", t.parameter.numel(),
                           AdamElement<T>{t.parameter.data<T>(), t.gradient.data<T>(), t.m.data<T>(), t.v.data<T>(),
                                          data_or_null<T>(t.average), Numbers<T>(a, ema_decay)});
  });
}

}  // namespace attune
