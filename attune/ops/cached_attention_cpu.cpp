#include "attune/ops/cached_attention_kernel.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/ops/cached_attention_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
HWY_INLINE T Dot(D d, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum_0 = hn::Zero(d), sum_1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum_0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum_0);
    sum_1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), sum_1);
  }
  for (; i + lanes <= n; i += lanes) sum_0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum_0);
  T dot = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_0, sum_1)));
  for (; i < n; ++i) dot += a[i] * b[i];
  return dot;
}

// y += factor * x
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void AddScaled(D d, T factor, const T* HWY_RESTRICT x, T* HWY_RESTRICT y, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::MulAdd(f, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  for (; i < n; ++i) y[i] += factor * x[i];
}

template <class T>
int64_t Distance(const CachedAttentionRow<T>& r, int64_t j) {
  return r.places[r.slots - 1] - r.places[j];
}

template <class T>
int64_t RelativeRow(const CachedAttentionRow<T>& r, int64_t j) {
  return r.clip - std::min(Distance(r, j), r.clip);
}

// Distances fall along the slots, so that those of one row of the tables lie side by side: each row that occurs is
// multiplied with the query once, and added to the output once.
template <class T>
void AddRelativeScores(const CachedAttentionRow<T>& r) {
  const hn::ScalableTag<T> d;
  int64_t row = -1;
  T score = 0;
  for (int64_t j = 0; j < r.slots; ++j) {
    if (const int64_t wanted = RelativeRow(r, j); wanted != row) {
      row = wanted;
      score = Dot(d, r.q, r.relative_keys + row * r.d_k, r.d_k) * r.scale;
    }
    r.weights[j] += score;
  }
}

template <class T>
void AddRelativeValues(const CachedAttentionRow<T>& r, T total) {
  const hn::ScalableTag<T> d;
  for (int64_t j = 0; j < r.slots;) {
    const int64_t row = RelativeRow(r, j);
    T weight = 0;
    for (; j < r.slots && RelativeRow(r, j) == row; ++j) weight += r.weights[j];
    AddScaled(d, weight / total, r.relative_values + row * r.d_v, r.out, r.d_v);
  }
}

template <class T>
void Row(const CachedAttentionRow<T>& r) {
  const hn::ScalableTag<T> d;
  std::fill_n(r.out, r.d_v, T{0});
  if (r.slots == 0) return;
  for (int64_t j = 0; j < r.slots; ++j) r.weights[j] = Dot(d, r.q, r.key_rows[j], r.d_k) * r.scale;
  if (r.relative_keys != nullptr) AddRelativeScores(r);
  if (r.slope != 0) {
    for (int64_t j = 0; j < r.slots; ++j) r.weights[j] -= r.slope * static_cast<T>(Distance(r, j));
  }
  T largest = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < r.slots; ++j) largest = std::max(largest, r.weights[j]);
  T total = 0;
  for (int64_t j = 0; j < r.slots; ++j) {
    r.weights[j] = std::exp(r.weights[j] - largest);
    total += r.weights[j];
  }
  for (int64_t j = 0; j < r.slots; ++j) AddScaled(d, r.weights[j] / total, r.value_rows[j], r.out, r.d_v);
  if (r.relative_values != nullptr) AddRelativeValues(r, total);
}

template <class T>
void TimesMatrix(const T* x, const T* w, T* y, int64_t in, int64_t out) {
  const hn::ScalableTag<T> d;
  std::fill_n(y, out, T{0});
  for (int64_t i = 0; i < in; ++i) AddScaled(d, x[i], w + i * out, y, out);
}

template <class T>
void TimesVector(const T* w, const T* x, T* y, int64_t in, int64_t out) {
  const hn::ScalableTag<T> d;
  for (int64_t o = 0; o < out; ++o) y[o] = Dot(d, w + o * in, x, in);
}

void RowF32(const CachedAttentionRow<float>& r) {
  Row(r);
}
void RowF64(const CachedAttentionRow<double>& r) {
  Row(r);
}
void TimesMatrixF32(const float* x, const float* w, float* y, int64_t in, int64_t out) {
  TimesMatrix(x, w, y, in, out);
}
void TimesMatrixF64(const double* x, const double* w, double* y, int64_t in, int64_t out) {
  TimesMatrix(x, w, y, in, out);
}
void TimesVectorF32(const float* w, const float* x, float* y, int64_t in, int64_t out) {
  TimesVector(w, x, y, in, out);
}
void TimesVectorF64(const double* w, const double* x, double* y, int64_t in, int64_t out) {
  TimesVector(w, x, y, in, out);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(RowF32);
HWY_EXPORT(RowF64);
HWY_EXPORT(TimesMatrixF32);
HWY_EXPORT(TimesMatrixF64);
HWY_EXPORT(TimesVectorF32);
HWY_EXPORT(TimesVectorF64);

void cached_attention_row(Cpu, const CachedAttentionRow<float>& row) {
  HWY_DYNAMIC_DISPATCH(RowF32)(row);
}
void cached_attention_row(Cpu, const CachedAttentionRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(RowF64)(row);
}
void vector_times_matrix(Cpu, const float* x, const float* w, float* y, int64_t in, int64_t out) {
  HWY_DYNAMIC_DISPATCH(TimesMatrixF32)(x, w, y, in, out);
}
void vector_times_matrix(Cpu, const double* x, const double* w, double* y, int64_t in, int64_t out) {
  HWY_DYNAMIC_DISPATCH(TimesMatrixF64)(x, w, y, in, out);
}
void matrix_times_vector(Cpu, const float* w, const float* x, float* y, int64_t in, int64_t out) {
  HWY_DYNAMIC_DISPATCH(TimesVectorF32)(w, x, y, in, out);
}
void matrix_times_vector(Cpu, const double* w, const double* x, double* y, int64_t in, int64_t out) {
  HWY_DYNAMIC_DISPATCH(TimesVectorF64)(w, x, y, in, out);
}

}  // namespace attune
#endif  // HWY_ONCE
