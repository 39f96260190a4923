#pragma once
// Sums of columns in a fixed order: of rows in pieces, then of the pieces.

#include "attune/base/rounding.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/tensor/tensor.h"

namespace attune::cuda {

constexpr int64_t kSumColumns = 32;  // of a block, a warp wide
constexpr int64_t kSumWarps = 8;     // of a block; warp w adds rows w, w + 8, ... of its piece
constexpr int64_t kSumRows = 256;    // of a piece

/// A block sums up kSumColumns columns of a piece of rows. For each element it calls element.read(row, column) once,
/// and then once element.value(row, column, read) with what read() returned; that returns the summand, a T. They are
/// two calls because a warp reads several rows before it works on the first of them. store(piece, column, sum) gets the
/// sums.
template <class T, class Element, class Store>
struct SumPieces {
  static constexpr int kThreads = kWarp * static_cast<int>(kSumWarps);
  static constexpr int kBlocks = sizeof(T) > 16 ? 2 : 3;
  static constexpr int kBatch = 4;
  Element element;
  Store store;
  int64_t rows, columns;

  ATTUNE_DEVICE void operator()(Thread& thread) const {
    const SharedArray<T> parts = thread.shared<T>(kThreads);
    const int64_t tiles = divide_up(columns, kSumColumns);
    const int64_t piece = thread.block() / tiles, c = thread.block() % tiles * kSumColumns + thread.lane();
    const int64_t end = rows < (piece + 1) * kSumRows ? rows : (piece + 1) * kSumRows;
    T sum = {};
    if (c < columns)
      for (int64_t r = piece * kSumRows + thread.warp(); r < end; r += kBatch * kSumWarps) add(r, end, c, sum);
    parts[thread.index()] = sum;
    thread.barrier();
    if (thread.warp() != 0 || c >= columns) return;
    for (int64_t w = 1; w < kSumWarps; ++w) sum = sum + parts[w * kWarp + thread.lane()];
    store(piece, c, sum);
  }

 private:
  ATTUNE_DEVICE void add(int64_t first, int64_t end, int64_t c, T& sum) const {
    decltype(element.read(first, c)) reads[kBatch];
    ATTUNE_UNROLL
    for (int n = 0; n < kBatch; ++n)
      if (first + n * kSumWarps < end) reads[n] = element.read(first + n * kSumWarps, c);
    ATTUNE_UNROLL
    for (int n = 0; n < kBatch; ++n)
      if (first + n * kSumWarps < end) sum = sum + element.value(first + n * kSumWarps, c, reads[n]);
  }
};

/// The base of an element whose value is what read() returned.
template <class T>
struct ReadElement {
  ATTUNE_DEVICE static T value(int64_t /*row*/, int64_t /*column*/, const T& read) { return read; }
  ATTUNE_DEVICE static Four<T> value_four(int64_t /*row*/, int64_t /*column*/, const Four<T>& read) { return read; }
};

/// An element that also has read_four() and value_four(), for columns column ... column + 3. They are called if
/// has_fours() says that its pointers allow it and the number of columns is a multiple of 4.
template <class Element>
concept ReadsFours = requires(const Element& element) {
  element.read_four(int64_t{}, int64_t{});
  element.has_fours();
};

template <class T>
ATTUNE_DEVICE Four<T> operator+(const Four<T>& a, const Four<T>& b) {
  Four<T> sum;
  ATTUNE_UNROLL
  for (int n = 0; n < 4; ++n) sum.value[n] = a.value[n] + b.value[n];
  return sum;
}

/// Four columns of an element as one column of Four<T>.
template <class T, class Element>
struct FourColumns {
  Element element;
  ATTUNE_DEVICE auto read(int64_t row, int64_t four) const { return element.read_four(row, 4 * four); }
  template <class Read>
  ATTUNE_DEVICE Four<T> value(int64_t row, int64_t four, const Read& at) const {
    return element.value_four(row, 4 * four, at);
  }
};

template <class T, class Store>
struct StoreFour {
  Store store;
  ATTUNE_DEVICE void operator()(int64_t four, const Four<T>& sums) const {
    for (int n = 0; n < 4; ++n) store(4 * four + n, sums.value[n]);
  }
};

/// The sums of pieces, [pieces, columns].
template <class T>
struct PieceSums : ReadElement<T> {
  T* sums;
  int64_t columns;
  PieceSums(T* of_pieces, int64_t of_columns) : sums(of_pieces), columns(of_columns) {}
  ATTUNE_DEVICE T read(int64_t piece, int64_t column) const { return sums[piece * columns + column]; }
  ATTUNE_DEVICE void operator()(int64_t piece, int64_t column, const T& sum) const {
    sums[piece * columns + column] = sum;
  }
};

/// Stores the sums of the only piece.
template <class T, class Store>
struct StoreSum {
  Store store;
  ATTUNE_DEVICE void operator()(int64_t /*piece*/, int64_t column, const T& sum) const { store(column, sum); }
};

/// A store of sum_columns(): out[column] = sum.
template <class T>
struct StoreColumn {
  T* out;
  ATTUNE_DEVICE void operator()(int64_t column, T sum) const { out[column] = sum; }
};

/// store(c, the sum over the rows r of element(r, c)) for every column c. Element and Store are structs for kernels.
template <class T, class Element, class Store>
void sum_columns(Cuda device, const char* name, int64_t rows, int64_t columns, const Element& element,
                 const Store& store) {
  if constexpr (ReadsFours<Element>) {
    if (columns % 4 == 0 && element.has_fours())
      return sum_columns<Four<T>>(device, name, rows, columns / 4, FourColumns<T, Element>{element},
                                  StoreFour<T, Store>{store});
  }
  const int64_t pieces = rows > 0 ? divide_up(rows, kSumRows) : 1;
  const int64_t tiles = divide_up(columns, kSumColumns);
  const auto start = [&]<class To>(const To& to) {
    using Kernel = SumPieces<T, Element, To>;
    launch(
        device, name,
        {.blocks = pieces * tiles, .threads = Kernel::kThreads, .shared_bytes = shared_bytes_of<T>(Kernel::kThreads)},
        Kernel{element, to, rows, columns});
  };
  if (pieces == 1) return start(StoreSum<T, Store>{store});
  const Tensor room = Tensor::empty({pieces * columns * static_cast<int64_t>(sizeof(T))}, {DType::u8, Device(device)});
  const PieceSums<T> sums(static_cast<T*>(room.raw()), columns);
  start(sums);
  sum_columns<T>(device, name, pieces, columns, sums, store);
}

}  // namespace attune::cuda
