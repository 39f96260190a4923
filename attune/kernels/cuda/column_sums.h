#pragma once
// Sums of columns in a fixed order: of rows in pieces, then of the pieces.

#include "attune/kernels/cuda/launch.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {

constexpr int64_t kSumColumns = 32;  // of a block, a warp wide
constexpr int64_t kSumWarps = 8;     // of a block; warp w adds rows w, w + 8, ... of its piece
constexpr int64_t kSumRows = 256;    // of a piece

/// A block sums up kSumColumns columns of a piece of rows. `element(row, column)` returns a value of type T; what else
/// it does, it does once for each element.
template <class T, class Element>
struct SumPieces {
  static constexpr int kThreads = kWarp * static_cast<int>(kSumWarps);
  Element element;
  int64_t rows, columns;
  T* sums;  // [pieces, columns]

  ATTUNE_DEVICE void operator()(Thread& thread) const {
    const SharedArray<T> parts = thread.shared<T>(kThreads);
    const int64_t tiles = (columns + kSumColumns - 1) / kSumColumns;
    const int64_t piece = thread.block() / tiles, c = thread.block() % tiles * kSumColumns + thread.lane();
    const int64_t end = rows < (piece + 1) * kSumRows ? rows : (piece + 1) * kSumRows;
    T sum = {};
    if (c < columns)
      for (int64_t r = piece * kSumRows + thread.warp(); r < end; r += kSumWarps) sum = sum + element(r, c);
    parts[thread.index()] = sum;
    thread.barrier();
    if (thread.warp() != 0 || c >= columns) return;
    for (int64_t w = 1; w < kSumWarps; ++w) sum = sum + parts[w * kWarp + thread.lane()];
    sums[piece * columns + c] = sum;
  }
};

/// Hands the sum over the pieces of each column to store(column, sum).
template <class T, class Store>
struct AddPieces {
  const T* sums;
  int64_t pieces, columns;
  Store store;
  ATTUNE_DEVICE void operator()(int64_t c) const {
    T sum = {};
    for (int64_t p = 0; p < pieces; ++p) sum = sum + sums[p * columns + c];
    store(c, sum);
  }
};

/// store(c, the sum over the rows r of element(r, c)) for every column c. Element and Store are structs for kernels.
template <class T, class Element, class Store>
void sum_columns(Cuda device, const char* name, int64_t rows, int64_t columns, const Element& element,
                 const Store& store) {
  const int64_t pieces = (rows + kSumRows - 1) / kSumRows, tiles = (columns + kSumColumns - 1) / kSumColumns;
  const Tensor sums = Tensor::empty({pieces * columns * static_cast<int64_t>(sizeof(T))}, {DType::u8, Device(device)});
  using Kernel = SumPieces<T, Element>;
  T* const parts = static_cast<T*>(sums.raw());
  launch(device, name,
         {.blocks = pieces * tiles, .threads = Kernel::kThreads, .shared_bytes = shared_bytes_of<T>(Kernel::kThreads)},
         Kernel{element, rows, columns, parts});
  for_each_element(device, name, columns, AddPieces<T, Store>{parts, pieces, columns, store});
}

}  // namespace attune::cuda
