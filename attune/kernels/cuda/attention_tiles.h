#pragma once
// Products of tiles of kTile by kTile numbers in shared memory. The threads of a block share the result: each holds the
// same rows and columns of it in every product. There are two layouts with the same members, so that kernels are
// written once: ScalarTiles, for numbers of any floating type, and TensorTiles, bfloat16 numbers and sums in float32 on
// tensor cores. In the emulation, TensorTiles form the same sums of the same rounded numbers without tensor cores.

#include "attune/kernels/attention_plan.h"
#include "attune/kernels/cuda/thread.h"
#include "attune/tensor/dtype.h"

namespace attune::cuda {

constexpr int kTile = static_cast<int>(kAttentionTile);

/// A thread's part of a product: element [i][j] is in row Tiles::row(thread, i) and column Tiles::column(thread, j).
template <class Tiles>
struct TilePart {
  typename Tiles::Sum value[Tiles::kRows][Tiles::kColumns] = {};
};

/// Sixteen neighbours share a row. A thread has columns that are 16 apart: a quad of dropout's mask.
template <class T>
struct ScalarTiles {
  using Stored = T;  // in shared memory
  using Sum = T;
  static constexpr int kThreads = 256;
  static constexpr int kRows = 4, kColumns = 4;
  static constexpr int kRowThreads = 16;    // that share a row
  static constexpr int kPitch = kTile + 1;  // from row to row in shared memory: neighbours in a column lie apart
  static constexpr int kDepth = 1;          // columns of a tile are filled with zeros up to a multiple of this

  ATTUNE_DEVICE static int row(const Thread& thread, int i) { return thread.index() / 16 + 16 * i; }
  ATTUNE_DEVICE static int column(const Thread& thread, int j) { return thread.index() % 16 + 16 * j; }

  /// part += the sum over k < depth of a(row, k) b(k, column). a is transposed if it stands in memory as [k][row], b if
  /// as [column][k].
  template <bool kTransposedA, bool kTransposedB>
  ATTUNE_DEVICE static void multiply(const Thread& thread, const SharedArray<T>& a, const SharedArray<T>& b, int depth,
                                     TilePart<ScalarTiles>& part) {
    const int first_row = row(thread, 0), first_column = column(thread, 0);
    for (int k = 0; k < depth; ++k) {
      T x[kRows], y[kColumns];
      ATTUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        const int r = first_row + 16 * i;
        x[i] = a[kTransposedA ? k * kPitch + r : r * kPitch + k];
      }
      ATTUNE_UNROLL
      for (int j = 0; j < kColumns; ++j) {
        const int c = first_column + 16 * j;
        y[j] = b[kTransposedB ? c * kPitch + k : k * kPitch + c];
      }
      ATTUNE_UNROLL
      for (int i = 0; i < kRows; ++i) {
        ATTUNE_UNROLL
        for (int j = 0; j < kColumns; ++j) part.value[i][j] += x[i] * y[j];
      }
    }
  }
};

/// Four warps have 16 rows each, in the layout of mma.m16n8k16: four neighbours share a row.
struct TensorTiles {
  using Stored = bfloat16;
  using Sum = float;
  static constexpr int kThreads = 128;
  static constexpr int kRows = 2, kColumns = 16;
  static constexpr int kRowThreads = 4;
  static constexpr int kPitch = kTile + 8;
  static constexpr int kDepth = 16;

  ATTUNE_DEVICE static int row(const Thread& thread, int i) { return 16 * thread.warp() + thread.lane() / 4 + 8 * i; }
  ATTUNE_DEVICE static int column(const Thread& thread, int j) { return j / 2 * 8 + thread.lane() % 4 * 2 + j % 2; }

  template <bool kTransposedA, bool kTransposedB>
  ATTUNE_DEVICE static void multiply(const Thread& thread, const SharedArray<bfloat16>& a,
                                     const SharedArray<bfloat16>& b, int depth, TilePart<TensorTiles>& part) {
#ifdef __CUDACC__
    const int first_row = row(thread, 0), n = thread.lane() / 4, k = thread.lane() % 4 * 2;
    for (int first = 0; first < depth; first += kDepth) {
      const unsigned x[4] = {
          pair<!kTransposedA>(a, first_row, first + k), pair<!kTransposedA>(a, first_row + 8, first + k),
          pair<!kTransposedA>(a, first_row, first + k + 8), pair<!kTransposedA>(a, first_row + 8, first + k + 8)};
      ATTUNE_UNROLL
      for (int j = 0; j < kColumns; j += 2) {
        const int c = j * 4 + n;
        const unsigned y[2] = {pair<kTransposedB>(b, c, first + k), pair<kTransposedB>(b, c, first + k + 8)};
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(part.value[0][j]), "+f"(part.value[0][j + 1]), "+f"(part.value[1][j]), "+f"(part.value[1][j + 1])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
      }
    }
#else
    for (int i = 0; i < kRows; ++i) {
      const int r = row(thread, i);
      for (int j = 0; j < kColumns; ++j) {
        const int c = column(thread, j);
        for (int k = 0; k < (depth + kDepth - 1) / kDepth * kDepth; ++k)
          part.value[i][j] += static_cast<float>(a[kTransposedA ? k * kPitch + r : r * kPitch + k]) *
                              static_cast<float>(b[kTransposedB ? c * kPitch + k : k * kPitch + c]);
      }
    }
#endif
  }

#ifdef __CUDACC__
 private:
  // Elements k and k + 1 of a line. Lines are the rows of the memory if `adjacent`, else its columns.
  template <bool kAdjacent>
  ATTUNE_DEVICE static unsigned pair(const SharedArray<bfloat16>& x, int line, int k) {
    if (kAdjacent) return *reinterpret_cast<const unsigned*>(&x[line * kPitch + k]);
    return static_cast<unsigned>(x[k * kPitch + line].bits) | static_cast<unsigned>(x[(k + 1) * kPitch + line].bits)
                                                                  << 16;
  }
#endif
};

/// op over the threads that share a row; each gets the result.
template <class Tiles, class T, class Op>
ATTUNE_DEVICE T reduce_row(Thread& thread, T value, Op op) {
  for (int mask = 1; mask < Tiles::kRowThreads; mask *= 2) value = op(value, thread.shuffle_xor(value, mask));
  return value;
}

/// One of the threads that share a row.
template <class Tiles>
ATTUNE_DEVICE bool first_of_row(const Thread& thread) {
  return thread.index() % Tiles::kRowThreads == 0;
}

/// A tile in shared memory, and which columns of its source it holds.
template <class Tiles>
class SharedTile {
 public:
  using Stored = typename Tiles::Stored;
  static constexpr int64_t kElements = int64_t{kTile} * Tiles::kPitch;
  static constexpr size_t kBytes = shared_bytes_of<Stored>(kElements);

  ATTUNE_DEVICE explicit SharedTile(Thread& thread) : data_(thread.shared<Stored>(kElements)) {}

  ATTUNE_DEVICE const SharedArray<Stored>& data() const { return data_; }

  /// To be called when the rows of the source change.
  ATTUNE_DEVICE void forget() { chunk_ = -1; }

  /// Reads columns [chunk * kTile, ...) of `rows` rows; row_of(r) is where row r begins, with d columns. Other elements
  /// that products read become 0. Does nothing if the tile holds these columns.
  template <class RowOf>
  ATTUNE_DEVICE void load(Thread& thread, int rows, int d, int chunk, RowOf row_of) {
    if (chunk == chunk_) return;
    chunk_ = chunk;
    const int first = chunk * kTile, width = width_of(d, chunk);
    const int filled = (width + Tiles::kDepth - 1) / Tiles::kDepth * Tiles::kDepth;
    thread.barrier();  // nobody reads what was here
    for (int e = thread.index(); e < kTile * kTile; e += thread.count()) {
      const int r = e / kTile, c = e % kTile;
      if (c >= filled) continue;
      const bool exists = r < rows && c < width;
      data_[r * Tiles::kPitch + c] = exists ? static_cast<Stored>(row_of(r)[first + c]) : Stored{};
    }
    thread.barrier();
  }

  /// Stores value(i, j) of the parts of all threads.
  template <class Value>
  ATTUNE_DEVICE void store(Thread& thread, Value value) {
    thread.barrier();
    for (int i = 0; i < Tiles::kRows; ++i)
      for (int j = 0; j < Tiles::kColumns; ++j)
        data_[Tiles::row(thread, i) * Tiles::kPitch + Tiles::column(thread, j)] = static_cast<Stored>(value(i, j));
    thread.barrier();
  }

  /// How many columns a chunk of d columns has.
  ATTUNE_DEVICE static int width_of(int d, int chunk) { return d - chunk * kTile < kTile ? d - chunk * kTile : kTile; }

 private:
  SharedArray<Stored> data_;
  int chunk_ = -1;
};

}  // namespace attune::cuda
