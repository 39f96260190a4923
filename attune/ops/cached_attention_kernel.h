#pragma once

#include <cstdint>

#include "attune/tensor/device.h"

namespace attune {

/// One query head over its slots: key_rows[j] and value_rows[j] point at the head's part of slot j.
template <class T>
struct CachedAttentionRow {
  const T* q;
  const T* const* key_rows;
  const T* const* value_rows;
  int64_t slots, d_k, d_v;
  T scale;
  /// Null, or the places of the slots, rising to that of the query, for the terms that depend on the distance
  /// places[slots - 1] - places[j]: ALiBi's slope (0: none) and the tables of Shaw et al. 2018 (null: none), whose row
  /// for a distance is clip - min(distance, clip).
  const int32_t* places;
  T slope;
  const T* relative_keys;    // [2 clip + 1, d_k]
  const T* relative_values;  // [2 clip + 1, d_v]
  int64_t clip;
  T* weights;  // room for `slots` numbers
  T* out;
};

void cached_attention_row(Cpu, const CachedAttentionRow<float>& row);
void cached_attention_row(Cpu, const CachedAttentionRow<double>& row);

/// y [out] = x [in] W, W [in, out] row-major.
void vector_times_matrix(Cpu, const float* x, const float* w, float* y, int64_t in, int64_t out);
void vector_times_matrix(Cpu, const double* x, const double* w, double* y, int64_t in, int64_t out);

/// y [out] = W x [in], W [out, in] row-major.
void matrix_times_vector(Cpu, const float* w, const float* x, float* y, int64_t in, int64_t out);
void matrix_times_vector(Cpu, const double* w, const double* x, double* y, int64_t in, int64_t out);

}  // namespace attune
