#pragma once
// Moves rows between the order of a batch's tokens and the order of the experts that they are for.

#include "attune/tensor/tensor.h"

namespace attune {

/// `places` is int32 [tokens, k]: choice j of token t has the row places[t, j], each row at most once. `weights` is
/// [tokens, k], or undefined: all 1. Rows are float32, bfloat16 or float64; weights float32, or float64 with such rows.
/// Sums are in the type of the weights.
struct ExpertPlaces {
  Tensor places, weights;
};

/// to[places[t, j]] = weights[t, j] from[t]; other rows of `to` are left as they are.
///   from [tokens, d]   to [rows, d]
void spread_rows(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& to);
void spread_rows(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& to);
void spread_rows(Cuda, const Tensor& from, const ExpertPlaces& at, const Tensor& to);

/// to[t] = the sum over j of weights[t, j] from[places[t, j]], in the order of j.
///   from [rows, d]   to [tokens, d]
void combine_rows(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& to);
void combine_rows(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& to);
void combine_rows(Cuda, const Tensor& from, const ExpertPlaces& at, const Tensor& to);

/// The gradient of the weights of combine_rows(): d_weights[t, j] = from[places[t, j]] . d_to[t]. Reads at.places.
void combine_rows_weights(Cpu, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to, const Tensor& d_weights);
void combine_rows_weights(Plain, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to,
                          const Tensor& d_weights);
void combine_rows_weights(Cuda, const Tensor& from, const ExpertPlaces& at, const Tensor& d_to,
                          const Tensor& d_weights);

/// Calls f(A{}, B{}, Sum{}) with the element types of two tensors of rows and of sums over them.
template <class F>
void with_row_types(const Tensor& a, const Tensor& b, F&& f) {
  if (a.dtype() == DType::f64) return f(double{}, double{}, double{});
  const bool narrow_a = a.dtype() == DType::bf16, narrow_b = b.dtype() == DType::bf16;
  if (narrow_a && narrow_b) return f(bfloat16{}, bfloat16{}, float{});
  if (narrow_a) return f(bfloat16{}, float{}, float{});
  if (narrow_b) return f(float{}, bfloat16{}, float{});
  f(float{}, float{}, float{});
}

}  // namespace attune
