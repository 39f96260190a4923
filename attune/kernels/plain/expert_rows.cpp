#include "attune/kernels/expert_rows.h"

#include "attune/kernels/for_dtype.h"

namespace attune {

void spread_rows(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, to, [&]<class From, class To, class Sum>(From, To, Sum) {
    const Sum* const weights = data_or_null<Sum>(at.weights);
    for (int64_t i = 0; i < tokens * k; ++i)
      for (int64_t c = 0; c < d; ++c) {
        const double value = static_cast<Sum>(from.data<From>()[i / k * d + c]);
        to.data<To>()[places[i] * d + c] = static_cast<To>(weights != nullptr ? weights[i] * value : value);
      }
  });
}

void combine_rows(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, to, [&]<class From, class To, class Sum>(From, To, Sum) {
    const Sum* const weights = data_or_null<Sum>(at.weights);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < d; ++c) {
        double sum = 0;
        for (int64_t i = t * k; i < (t + 1) * k; ++i) {
          const double value = static_cast<Sum>(from.data<From>()[places[i] * d + c]);
          sum += weights != nullptr ? weights[i] * value : value;
        }
        to.data<To>()[t * d + c] = static_cast<To>(sum);
      }
  });
}

void combine_rows_weights(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to,
                          const Tensor& d_weights) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, d_to, [&]<class From, class To, class Sum>(From, To, Sum) {
    for (int64_t i = 0; i < tokens * k; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < d; ++c)
        sum += static_cast<double>(static_cast<Sum>(from.data<From>()[places[i] * d + c])) *
               static_cast<Sum>(d_to.data<To>()[i / k * d + c]);
      d_weights.data<Sum>()[i] = static_cast<Sum>(sum);
    }
  });
}

}  // namespace attune
