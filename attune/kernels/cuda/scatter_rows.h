#pragma once
// Sums of rows that go to the same place, in the order of the rows.

#include <climits>

#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/for_dtype.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {

/// first[r] = the first i with ids[i] = r.
struct FirstWithId {
  const int32_t* ids;
  int32_t* first;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    if (ids[i] >= 0) atomic_min(first + ids[i], static_cast<int32_t>(i));
  }
};

/// The first row of each place adds up all rows of that place.
template <class T>
struct SumOfSameId {
  const int32_t* ids;
  const int32_t* first;
  const T* from;
  T* to;
  T factor;
  int64_t rows, columns;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / columns, column = i % columns;
    const int32_t id = ids[row];
    if (id < 0 || first[id] != row) return;
    T sum = 0;
    for (int64_t r = row; r < rows; ++r)
      if (ids[r] == id) sum += from[r * columns + column] * factor;
    to[id * columns + column] = sum;
  }
};

/// Writes all of `to` [places, columns]: row p = the sum of factor * from[i] over all i with ids[i] = p, in the order
/// of i. Rows with id -1 go nowhere.        ids int32 [rows], from [rows, columns]
inline void scatter_rows(Cuda device, const char* name, const Tensor& ids, const Tensor& from, double factor,
                         const Tensor& to) {
  const int64_t rows = ids.numel(), columns = to.size(1);
  clear(device, to.raw(), to.bytes());
  const Tensor first = Tensor::full({to.size(0)}, INT_MAX, {DType::i32, Device(device)});
  for_each_element(device, name, rows, FirstWithId{ids.data<int32_t>(), first.data<int32_t>()});
  dispatch_floating(name, from.dtype(), [&]<class T>(T) {
    for_each_element(device, name, rows * columns,
                     SumOfSameId<T>{ids.data<int32_t>(), first.data<int32_t>(), from.data<T>(), to.data<T>(),
                                    static_cast<T>(factor), rows, columns});
  });
}

}  // namespace attune::cuda
