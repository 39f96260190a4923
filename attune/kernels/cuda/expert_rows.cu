#include "attune/kernels/expert_rows.h"

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

constexpr int kRowThreads = 128;

template <class From, class To, class Number>
struct SpreadRows {
  const From* from;
  const int32_t* places;
  const Number* weights;  // or null
  To* to;
  int64_t k, d;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t choice = i / d, column = i % d;
    const Number value = static_cast<Number>(from[choice / k * d + column]);
    to[places[choice] * d + column] = static_cast<To>(weights != nullptr ? weights[choice] * value : value);
  }
};

template <class From, class To, class Number>
struct CombineRows {
  const From* from;
  const int32_t* places;
  const Number* weights;  // or null
  To* to;
  int64_t k, d;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t token = i / d, column = i % d;
    Number sum = 0;
    for (int64_t choice = token * k; choice < (token + 1) * k; ++choice) {
      const Number value = static_cast<Number>(from[places[choice] * d + column]);
      sum += weights != nullptr ? weights[choice] * value : value;
    }
    to[i] = static_cast<To>(sum);
  }
};

// One block for each choice of a token.
template <class From, class To, class Number>
struct CombineRowsWeights {
  static constexpr int kThreads = kRowThreads;
  const From* from;
  const int32_t* places;
  const To* d_to;
  Number* d_weights;
  int64_t k, d;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t choice = thread.block();
    const From* const row = from + places[choice] * d;
    const To* const gradient = d_to + choice / k * d;
    Number sum = 0;
    for (int64_t c = thread.index(); c < d; c += thread.count())
      sum += static_cast<Number>(row[c]) * static_cast<Number>(gradient[c]);
    sum = thread.reduce(sum, cuda::Sum{});
    if (thread.index() == 0) d_weights[choice] = sum;
  }
};

}  // namespace

void spread_rows(Cuda device, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t k = at.places.size(1), d = from.size(1);
  with_row_types(from, to, [&]<class From, class To, class Number>(From, To, Number) {
    cuda::for_each_element(device, "spread_rows", at.places.numel() * d,
                           SpreadRows<From, To, Number>{from.data<From>(), at.places.data<int32_t>(),
                                                        data_or_null<Number>(at.weights), to.data<To>(), k, d});
  });
}

void combine_rows(Cuda device, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t k = at.places.size(1), d = from.size(1);
  with_row_types(from, to, [&]<class From, class To, class Number>(From, To, Number) {
    cuda::for_each_element(device, "combine_rows", at.places.size(0) * d,
                           CombineRows<From, To, Number>{from.data<From>(), at.places.data<int32_t>(),
                                                         data_or_null<Number>(at.weights), to.data<To>(), k, d});
  });
}

void combine_rows_weights(Cuda device, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to,
                          const Tensor& d_weights) {
  const int64_t k = at.places.size(1), d = from.size(1);
  with_row_types(from, d_to, [&]<class From, class To, class Number>(From, To, Number) {
    cuda::launch(device, "combine_rows_weights",
                 {.blocks = at.places.numel(), .threads = cuda::threads_for(d, kRowThreads, 4)},
                 CombineRowsWeights<From, To, Number>{from.data<From>(), at.places.data<int32_t>(), d_to.data<To>(),
                                                      d_weights.data<Number>(), k, d});
  });
}

}  // namespace attune
