#pragma once
// Sums of rows that go to the same place, in the order of the rows.

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows_by_id.h"
#include "attune/tensor/indices.h"

namespace attune::cuda {

/// Element i is one column of a place: the sum of this column over the rows that go there.
template <class T>
struct SumOfRows {
  const int32_t* starts;
  const int32_t* positions;
  const T* from;
  T* to;
  T factor;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t place = i / columns, column = i % columns;
    T sum = 0;
    for (int32_t p = starts[place]; p < starts[place + 1]; ++p) sum += from[positions[p] * columns + column] * factor;
    to[i] = sum;
  }
};

/// Writes all of `to` [places, columns]: row p = the sum of factor * from[i] over all i with ids[i] = p, in the order
/// of i. Rows with id -1 go nowhere. The host sorts the ids, which costs as many steps as there are ids and places.
///        ids [rows], from [rows, columns]
inline void scatter_rows(Cuda device, const char* name, const Indices& ids, const Tensor& from, double factor,
                         const Tensor& to) {
  const RowsById sorted(ids.values(), to.size(0));
  const Tensor starts = on_device(device, sorted.starts), positions = on_device(device, sorted.positions);
  dispatch_floating(name, from.dtype(), [&]<class T>(T) {
    for_each_element(device, name, to.numel(),
                     SumOfRows<T>{starts.data<int32_t>(), positions.data<int32_t>(), from.data<T>(), to.data<T>(),
                                  static_cast<T>(factor), to.size(1)});
  });
}

}  // namespace attune::cuda
