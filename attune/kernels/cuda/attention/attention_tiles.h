#pragma once
// Products of tiles of kTile by kTile numbers in shared memory. The threads of a block share the result: each holds the
// same rows and columns of it in every product. There are two layouts with the same members, so that kernels are
// written once: ScalarTiles, for numbers of any floating type, and TensorTiles, bfloat16 numbers and sums in float32 on
// tensor cores. In the emulation, TensorTiles form the same sums of the same rounded numbers without tensor cores.

#include <cmath>
#include <type_traits>

#include "attune/kernels/attention/attention_plan.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/runtime/thread.h"
#include "attune/tensor/dtype.h"

namespace attune::cuda {

constexpr int kTile = static_cast<int>(kAttentionTile);

/// A thread's part of a product: element [i][j] is in row Tiles::row(thread, i) and column Tiles::column(thread, j).
template <class Tiles>
struct TilePart {
  typename Tiles::Sum value[Tiles::kRows][Tiles::kColumns] = {};
};

/// Sixteen neighbours share a row. A thread has columns that are 16 apart: a quad of dropout's mask.
template <class T, bool kPlainPairs>
struct ScalarTiles {
  static constexpr bool kPlain = kPlainPairs;  // see attention_block.h
  using Source = T;                            // of the inputs and of the results
  static constexpr bool kAhead = false;        // whether tiles are read ahead: they need no conversion
  using Stored = T;                            // in shared memory
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

  ATTUNE_DEVICE static T exp_of_difference(T x, T y) { return std::exp(x - y); }
  ATTUNE_DEVICE static void put(const SharedArray<T>& to, int64_t at, const Four<Source>& x) {
    for (int n = 0; n < 4; ++n) to[at + n] = x.value[n];
  }
  ATTUNE_DEVICE static void put_row(const Thread& thread, const SharedArray<T>& to, int i, const T (&x)[kColumns]) {
    for (int j = 0; j < kColumns; ++j) to[row(thread, i) * kPitch + column(thread, j)] = x[j];
  }
};

/// Four warps have 16 rows each, in the layout of mma.m16n8k16: four neighbours share a row.
template <class From, bool kPlainPairs>
struct TensorTiles {
  static constexpr bool kPlain = kPlainPairs;
  using Source = From;  // float or bfloat16
  static constexpr bool kAhead = std::is_same_v<From, bfloat16>;
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
    for (int first = 0; first < depth; first += kDepth) {
      const Operand x = left<kTransposedA>(thread, a, first);
      multiply_by<kTransposedB>(thread, x, b, first, part);
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

  ATTUNE_DEVICE static float exp_of_difference(float x, float y) {
#ifdef __CUDACC__
    constexpr float kLog2OfE = 1.4426950408889634f;
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(__fmaf_rn(x, kLog2OfE, -y * kLog2OfE)));
    return result;
#else
    return std::exp(x - y);
#endif
  }

  ATTUNE_DEVICE static void put(const SharedArray<bfloat16>& to, int64_t at, const Four<Source>& x) {
#ifdef __CUDACC__
    if constexpr (std::is_same_v<Source, bfloat16>) {
      write_four(&to[at], 0, x);
    } else {
      *reinterpret_cast<uint2*>(&to[at]) = {rounded(x.value[0], x.value[1]), rounded(x.value[2], x.value[3])};
    }
#else
    for (int n = 0; n < 4; ++n) to[at + n] = static_cast<bfloat16>(x.value[n]);
#endif
  }
  ATTUNE_DEVICE static void put_row(const Thread& thread, const SharedArray<bfloat16>& to, int i,
                                    const float (&x)[kColumns]) {
    ATTUNE_UNROLL
    for (int j = 0; j < kColumns; j += 2) {  // two neighbours
      bfloat16& first = to[row(thread, i) * kPitch + column(thread, j)];
#ifdef __CUDACC__
      *reinterpret_cast<unsigned*>(&first) = rounded(x[j], x[j + 1]);
#else
      first = static_cast<bfloat16>(x[j]);
      to[row(thread, i) * kPitch + column(thread, j + 1)] = static_cast<bfloat16>(x[j + 1]);
#endif
    }
  }

#ifdef __CUDACC__
  /// 16 rows of this warp by kDepth columns of a left operand.
  struct Operand {
    unsigned words[4];
  };

  /// Columns first ... first + kDepth - 1 of this thread's rows of a part, which becomes a left operand.
  ATTUNE_DEVICE static Operand left(const TilePart<TensorTiles>& part, int first) {
    const int j = first / 4;
    return {{rounded(part.value[0][j], part.value[0][j + 1]), rounded(part.value[1][j], part.value[1][j + 1]),
             rounded(part.value[0][j + 2], part.value[0][j + 3]), rounded(part.value[1][j + 2], part.value[1][j + 3])}};
  }

  /// part += x . b, of rows first ... first + kDepth - 1 of b.
  template <bool kTransposedB>
  ATTUNE_DEVICE static void multiply_by(const Thread& thread, const Operand& x, const SharedArray<bfloat16>& b,
                                        int first, TilePart<TensorTiles>& part) {
    const int group = thread.lane() / 8, n = thread.lane() % 8;
    ATTUNE_UNROLL
    for (int j = 0; j < kColumns; j += 4) {  // two times eight columns
      const int column = j * 4 + group / 2 * 8, k = first + group % 2 * 8;
      const Operand y =
          kTransposedB ? matrices<false>(&b[(column + n) * kPitch + k]) : matrices<true>(&b[(k + n) * kPitch + column]);
      ATTUNE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int c = j + 2 * half;
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(part.value[0][c]), "+f"(part.value[0][c + 1]), "+f"(part.value[1][c]), "+f"(part.value[1][c + 1])
            : "r"(x.words[0]), "r"(x.words[1]), "r"(x.words[2]), "r"(x.words[3]), "r"(y.words[2 * half]),
              "r"(y.words[2 * half + 1]));
      }
    }
  }

 private:
  template <bool kTransposedA>
  ATTUNE_DEVICE static Operand left(const Thread& thread, const SharedArray<bfloat16>& a, int first) {
    const int group = thread.lane() / 8, n = thread.lane() % 8;
    const int row = 16 * thread.warp() + group % 2 * 8, k = first + group / 2 * 8;
    return kTransposedA ? matrices<true>(&a[(k + n) * kPitch + row]) : matrices<false>(&a[(row + n) * kPitch + k]);
  }

  // Four matrices of 8 by 8 numbers, or their transposes. Lanes 8 i ... 8 i + 7 say where the rows of matrix i are.
  template <bool kTransposed>
  ATTUNE_DEVICE static Operand matrices(const bfloat16* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    Operand x;
    if constexpr (kTransposed)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.words[0]), "=r"(x.words[1]), "=r"(x.words[2]), "=r"(x.words[3])
                   : "r"(address)
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.words[0]), "=r"(x.words[1]), "=r"(x.words[2]), "=r"(x.words[3])
                   : "r"(address)
                   : "memory");
    return x;
  }

  // Both rounded to bfloat16; low in the low half.
  ATTUNE_DEVICE static unsigned rounded(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
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

/// A tile in shared memory, and which columns of its source it holds. kAhead: there is room for a second one, whose
/// rows may be on their way while products read the first.
template <class Tiles, bool kAhead = Tiles::kAhead>
class SharedTile {
 public:
  using Stored = typename Tiles::Stored;
  static constexpr int64_t kElements = int64_t{kTile} * Tiles::kPitch;
  static constexpr size_t kBytes = (kAhead ? 2 : 1) * shared_bytes_of<Stored>(kElements);

  ATTUNE_DEVICE explicit SharedTile(Thread& thread)
      : data_(thread.shared<Stored>(kElements)), next_(kAhead ? thread.shared<Stored>(kElements) : data_) {}

  ATTUNE_DEVICE const SharedArray<Stored>& data() const { return data_; }

  /// Starts to read the next rows, where that can be done ahead: all columns of `rows` rows, see load(). They overwrite
  /// the tile before the present one: every thread must have been at a barrier since products read that one.
  template <class RowOf>
  ATTUNE_DEVICE void start(const Thread& thread, int rows, int d, bool aligned, RowOf row_of) {
    if constexpr (kAhead) {
      if (!aligned || d > kTile) return;
      constexpr int kEights = kTile / 8;
      ATTUNE_UNROLL
      for (int n = 0; n < kTile * kEights / Tiles::kThreads; ++n) {
        const int e = thread.index() + n * Tiles::kThreads, r = e / kEights, c = e % kEights * 8;
        const bool exists = r < rows && c < d;
        thread.copy_ahead(&next_[r * Tiles::kPitch + c], exists ? row_of(r) + c : row_of(0), exists);
      }
      started_ = true;
    }
  }
  /// Whether there are reads to wait for, by Thread::wait_for_copies().
  ATTUNE_DEVICE bool has_started() const { return started_; }

  /// To be called when the rows of the source change. Rows that start() began to read, and that were waited for, take
  /// the place of the present ones. Without start() the tile then holds no rows.
  ATTUNE_DEVICE void next_rows() {
    chunk_ = started_ ? 0 : -1;
    if (!started_) return;
    const SharedArray<Stored> before = data_;
    data_ = next_;
    next_ = before;
    started_ = false;
  }

  /// Reads columns [chunk * kTile, ...) of `rows` rows; row_of(r) is where row r begins, with d columns. `aligned`:
  /// rows begin at multiples of 16 bytes, and d numbers are such a multiple. Other elements that products read become
  /// 0. Does nothing if the tile holds these columns.
  template <class RowOf>
  ATTUNE_DEVICE void load(Thread& thread, int rows, int d, int chunk, bool aligned, RowOf row_of) {
    if (chunk == chunk_) return;
    chunk_ = chunk;
    const int first = chunk * kTile, width = width_of(d, chunk);
    if (aligned && width == kTile) return load_fours(thread, rows, first, row_of);
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

  /// Stores the parts of all threads.
  ATTUNE_DEVICE void store(Thread& thread, const TilePart<Tiles>& part) {
    thread.barrier();
    put(thread, part);
    thread.barrier();
  }
  /// The same without the barriers.
  ATTUNE_DEVICE void put(const Thread& thread, const TilePart<Tiles>& part) {
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) Tiles::put_row(thread, data_, i, part.value[i]);
  }

  /// How many columns a chunk of d columns has.
  ATTUNE_DEVICE static int width_of(int d, int chunk) { return d - chunk * kTile < kTile ? d - chunk * kTile : kTile; }

 private:
  template <class RowOf>
  ATTUNE_DEVICE void load_fours(Thread& thread, int rows, int first, RowOf row_of) {
    constexpr int kFours = kTile / 4, kRounds = kTile * kFours / Tiles::kThreads;
    Four<typename Tiles::Source> x[kRounds] = {};
    ATTUNE_UNROLL
    for (int n = 0; n < kRounds; ++n) {  // all reads are on their way before the first is waited for
      const int e = thread.index() + n * Tiles::kThreads, r = e / kFours;
      if (r < rows) x[n] = read_four(row_of(r), first + e % kFours * 4);
    }
    thread.barrier();  // nobody reads what was here
    ATTUNE_UNROLL
    for (int n = 0; n < kRounds; ++n) {
      const int e = thread.index() + n * Tiles::kThreads;
      Tiles::put(data_, e / kFours * Tiles::kPitch + e % kFours * 4, x[n]);
    }
    thread.barrier();
  }

  SharedArray<Stored> data_, next_;
  int chunk_ = -1;
  bool started_ = false;
};

/// A tile that is stored, not read.
template <class Tiles>
using StoredTile = SharedTile<Tiles, false>;

/// sum += part . b; part has `depth` columns that are not 0, b a tile of as many rows. `room` holds the part afterwards
/// where the threads exchange it.
template <class Tiles>
ATTUNE_DEVICE void multiply_part(Thread& thread, const TilePart<Tiles>& part, StoredTile<Tiles>& room,
                                 const SharedTile<Tiles>& b, int depth, TilePart<Tiles>& sum) {
#ifdef __CUDACC__
  if constexpr (!std::is_same_v<typename Tiles::Stored,
                                typename Tiles::Sum>) {  // a thread has what its own product needs
    ATTUNE_UNROLL
    for (int first = 0; first < kTile; first += Tiles::kDepth)
      if (first < depth) Tiles::template multiply_by<false>(thread, Tiles::left(part, first), b.data(), first, sum);
    return;
  }
#endif
  room.store(thread, part);
  Tiles::template multiply<false, false>(thread, room.data(), b.data(), depth, sum);
}

}  // namespace attune::cuda
