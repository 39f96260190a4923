#include "attune/kernels/adam.h"

#include <cmath>
#include <vector>

#include "attune/base/rounding.h"
#include "attune/kernels/cuda/chunks.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr int64_t kChunk = 4096;  // elements of a block

// The arguments in the type of the parameters. 1 - beta is formed in float64 and rounded once: formed from a rounded
// beta it would be far off.
template <class T>
struct Numbers {
  T rest_1, beta_2, rest_2, epsilon, rate, root_scale, rest_of_average;

  Numbers(const AdamStepArguments& a, double decay)
      : rest_1(static_cast<T>(1 - a.beta_1)),
        beta_2(static_cast<T>(a.beta_2)),
        rest_2(static_cast<T>(1 - a.beta_2)),
        epsilon(static_cast<T>(a.epsilon)),
        rate(static_cast<T>(a.learning_rate / a.bias_correction_1)),
        root_scale(static_cast<T>(1 / a.bias_correction_2)),
        rest_of_average(static_cast<T>(1 - decay)) {}
};

template <class T>
struct Entry {
  int64_t first, count;  // its first block, and its elements
  T* parameter;
  const T* gradient;
  T* m;
  T* v;
  T* average;  // or null
  T keep, l2;
};

// AdamCondition, in the same arithmetic as on the host.
struct Condition {
  const double* numbers;
  int64_t count;
  double clip_norm;

  ATTUNE_DEVICE bool holds() const {
    for (int64_t i = 0; i < count; ++i)
      if (!(numbers[i] - numbers[i] == 0)) return false;
    return true;
  }
  ATTUNE_DEVICE double gradient_scale() const {
    const double norm = std::sqrt(numbers[0]);
    return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1;
  }
};

template <class T>
struct AdamSteps {
  static constexpr int kThreads = 256;
  const Entry<T>* entries;
  int64_t entry_count;
  Condition condition;
  Numbers<T> a;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    if (!condition.holds()) return;
    const auto gradient_scale = static_cast<T>(condition.gradient_scale());
    const Entry<T>& of = cuda::entry_of(entries, entry_count, thread.block());
    const cuda::ChunkRange chunk = cuda::chunk_of(of, thread.block(), kChunk);
    for (int64_t i = chunk.begin + thread.index(); i < chunk.end; i += thread.count()) {
      const T old = of.parameter[i], g = of.l2 * old + of.gradient[i] * gradient_scale;
      const T first = of.m[i] + a.rest_1 * (g - of.m[i]);
      const T second = a.beta_2 * of.v[i] + a.rest_2 * g * g;
      const T next = old * of.keep - a.rate * first / (std::sqrt(second * a.root_scale) + a.epsilon);
      of.m[i] = first;
      of.v[i] = second;
      of.parameter[i] = next;
      if (of.average != nullptr) of.average[i] += a.rest_of_average * (next - of.average[i]);
    }
  }
};

}  // namespace

void adam_steps(Cuda device, std::span<const AdamUpdate> updates, const AdamCondition& condition, double ema_decay,
                const AdamStepArguments& a) {
  if (updates.empty()) return;
  const Condition on_device{condition.numbers.data<double>(), condition.numbers.numel(), condition.clip_norm};
  dispatch_floating("adam", updates[0].parameter.dtype(), [&]<class T>(T) {
    std::vector<Entry<T>> entries;
    int64_t blocks = 0, longest = 0;
    for (const AdamUpdate& u : updates) {
      const int64_t count = u.parameter.numel();
      if (count == 0) continue;
      entries.push_back({blocks, count, u.parameter.data<T>(), u.gradient.data<T>(), u.m.data<T>(), u.v.data<T>(),
                         data_or_null<T>(u.average), static_cast<T>(1 - a.learning_rate * u.weight_decay),
                         static_cast<T>(u.l2)});
      blocks += divide_up(count, kChunk);
      longest = std::max(longest, count);
    }
    const Tensor table = cuda::structs_on_device<Entry<T>>(device, entries);
    using Kernel = AdamSteps<T>;
    cuda::launch(
        device, "adam", {.blocks = blocks, .threads = cuda::threads_for(longest, Kernel::kThreads)},
        Kernel{static_cast<const Entry<T>*>(table.raw()), std::ssize(entries), on_device, Numbers<T>(a, ema_decay)});
  });
}

}  // namespace attune
