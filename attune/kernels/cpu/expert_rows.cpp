#include "attune/kernels/expert_rows.h"

#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/row_grain.h"

namespace attune {

void spread_rows(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, to, [&]<class From, class To, class Sum>(From, To, Sum) {
    const From* const source = from.data<From>();
    To* const target = to.data<To>();
    const Sum* const weights = data_or_null<Sum>(at.weights);
    parallel_for(tokens, row_grain(d * k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * k; i < end * k; ++i) {
        const From* const row = source + i / k * d;
        To* const into = target + places[i] * d;
        const Sum weight = weights != nullptr ? weights[i] : Sum{1};
        for (int64_t c = 0; c < d; ++c) into[c] = static_cast<To>(weight * static_cast<Sum>(row[c]));
      }
    });
  });
}

void combine_rows(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& to) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, to, [&]<class From, class To, class Sum>(From, To, Sum) {
    const From* const source = from.data<From>();
    To* const target = to.data<To>();
    const Sum* const weights = data_or_null<Sum>(at.weights);
    constexpr int64_t kColumns = 512;  // at a time: their sums stay in the cache
    parallel_for(tokens, row_grain(d * k), [&](int64_t begin, int64_t end) {
      Sum sums[kColumns];
      for (int64_t t = begin; t < end; ++t)
        for (int64_t first = 0; first < d; first += kColumns) {
          const int64_t columns = std::min(kColumns, d - first);
          std::fill_n(sums, columns, Sum{0});
          for (int64_t i = t * k; i < (t + 1) * k; ++i) {
            const From* const row = source + places[i] * d + first;
            const Sum weight = weights != nullptr ? weights[i] : Sum{1};
            for (int64_t c = 0; c < columns; ++c) sums[c] += weight * static_cast<Sum>(row[c]);
          }
          To* const into = target + t * d + first;
          for (int64_t c = 0; c < columns; ++c) into[c] = static_cast<To>(sums[c]);
        }
    });
  });
}

void combine_rows_weights(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to,
                          const Tensor& d_weights) {
  const int64_t tokens = at.places.size(0), k = at.places.size(1), d = from.size(1);
  const int32_t* const places = at.places.data<int32_t>();
  with_row_types(from, d_to, [&]<class From, class To, class Sum>(From, To, Sum) {
    const From* const source = from.data<From>();
    const To* const gradient = d_to.data<To>();
    Sum* const result = d_weights.data<Sum>();
    parallel_for(tokens, row_grain(d * k), [&](int64_t begin, int64_t end) {
      constexpr int64_t kLanes = 16;  // sums side by side, so that the compiler can use vectors
      for (int64_t i = begin * k; i < end * k; ++i) {
        const From* const row = source + places[i] * d;
        const To* const other = gradient + i / k * d;
        Sum sums[kLanes] = {};
        int64_t c = 0;
        for (; c + kLanes <= d; c += kLanes)
          for (int64_t lane = 0; lane < kLanes; ++lane)
            sums[lane] += static_cast<Sum>(row[c + lane]) * static_cast<Sum>(other[c + lane]);
        Sum sum = 0;
        for (; c < d; ++c) sum += static_cast<Sum>(row[c]) * static_cast<Sum>(other[c]);
        for (const Sum lane : sums) sum += lane;
        result[i] = sum;
      }
    });
  });
}

}  // namespace attune
