#pragma once

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace attune {

/// y[i] = scale * table[ids[i]]        ids int32 [n], table [vocabulary, columns], y [n, columns]
/// y has the type of the table, float32 where that is bfloat16.
void embedding_forward(Cpu, const Tensor& ids, const Tensor& table, double scale, const Tensor& y);
void embedding_forward(Plain, const Tensor& ids, const Tensor& table, double scale, const Tensor& y);
void embedding_forward(Cuda, const Tensor& ids, const Tensor& table, double scale, const Tensor& y);

/// Writes all of d_table [vocabulary, columns]: row v = scale * the sum of dy[i] over all i with ids[i] = v, in the
/// order of i.
void embedding_backward(Cpu, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table);
void embedding_backward(Plain, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table);
void embedding_backward(Cuda, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table);

/// y[i] = dropout(x[i] + table[rows[i]])
struct AddRows {
  const Tensor& x;      // [n, columns]
  const Tensor& table;  // [any, columns]
  const Tensor& rows;   // int32 [n]
  DropoutMask mask;
  const Tensor& y;  // [n, columns]
};
void add_rows(Cpu, const AddRows& arguments);
void add_rows(Plain, const AddRows& arguments);
void add_rows(Cuda, const AddRows& arguments);

}  // namespace attune
