#pragma once

#include <cstdint>

#include "attune/kernels/dropout_mask.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"

namespace attune {

/// The index of the first of n ids that is not in [0, bound), or -1.
int64_t first_outside(Cpu, const int32_t* ids, int64_t n, int64_t bound);

/// y [n, columns]: y[i] = scale * table[ids[i]]
void embedding_forward(Cpu, const int32_t* ids, const float* table, float* y, int64_t n, int64_t columns, double scale);
void embedding_forward(Cpu, const int32_t* ids, const double* table, double* y, int64_t n, int64_t columns,
                       double scale);

/// d_table [vocabulary, columns], all of it written: row v = scale * the sum of dy[i] over ids[i] = v, in the order of
/// i.
template <class T>
struct EmbeddingBackward {
  const int32_t* ids;
  int64_t n;
  const T* dy;
  T* d_table;
  int64_t vocabulary;
  int64_t columns;
  double scale;
};
void embedding_backward(Cpu, const EmbeddingBackward<float>& arguments);
void embedding_backward(Cpu, const EmbeddingBackward<double>& arguments);

/// y[i] = dropout(x[i] + table[rows[i]])
template <class T>
struct AddTableRows {
  const T* x;
  const T* table;
  const int32_t* rows;
  int64_t n;
  int64_t columns;
  DropoutMask mask;
  T* y;
};
void add_rows(Cpu, const AddTableRows<float>& arguments);
void add_rows(Cpu, const AddTableRows<double>& arguments);

}  // namespace attune
