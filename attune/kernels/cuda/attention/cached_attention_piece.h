#pragma once
// Cached attention of one piece of a row: its scores, their weights, and the sums of its values.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "attune/kernels/cuda/attention/cached_attention_view.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune::cuda {

/// One block for a piece of a row and at most kHeads query heads that share a key head. Threads read kWide neighbouring
/// columns at once, one or four.
template <class T, int kWide, int kHeads>
struct AttendPiece {
  static constexpr int kThreads = 128;
  static constexpr int kBlocks = sizeof(T) == sizeof(float) ? 4 : 1;  // at once on a multiprocessor
  static constexpr size_t kSharedBytes =
      shared_bytes_of<int>(kMostKeysOfPiece) + 2 * shared_bytes_of<const T*>(kMostKeysOfPiece) +
      shared_bytes_of<T>(kMostKeysOfPiece * kHeads) + shared_bytes_of<T>(kThreads * kHeads * kWide);
  CachedView<T> in;

  static int64_t blocks_of_piece(const CachedView<T>& view) {
    return int64_t{view.kv_heads} * parts_of_group(view.group);
  }

  ATTUNE_DEVICE void operator()(Thread& thread) const {
    const int parts = parts_of_group(in.group), part = static_cast<int>(thread.block() % parts);
    const int64_t job = thread.block() / parts, number = job / in.kv_heads;
    const int key_head = static_cast<int>(job % in.kv_heads), left = in.group - part * kHeads;
    const CachedPiece piece = in.pieces[number];
    const CachedRow row = in.rows[piece.row];
    const Piece work{.number = number,
                     .row = piece.row,
                     .count = piece.count,
                     .position = row.length - 1,
                     .head = key_head * in.group + part * kHeads,
                     .heads = left < kHeads ? left : kHeads,
                     .distances = thread.shared<int>(kMostKeysOfPiece),
                     .keys = {thread.shared<const T*>(kMostKeysOfPiece), in.d_k, in.terms.relative_keys},
                     .values = {thread.shared<const T*>(kMostKeysOfPiece), in.d_v, in.terms.relative_values},
                     .weights = thread.shared<T>(kMostKeysOfPiece * kHeads),
                     .sums = thread.shared<T>(kThreads * kHeads * kWide)};
    const VisibleKeys visible(in.pattern, row.length);
    for (int u = thread.index(); u < work.count; u += thread.count()) {
      const int position = visible.position(piece.first + u), slot = in.slots[row.first_slot + position];
      work.distances[u] = position - work.position;
      work.keys.first[u] = in.keys.row(slot, key_head);
      work.values.first[u] = in.values.row(slot, key_head);
    }
    thread.barrier();
    form_products(thread, work);
    thread.barrier();
    for (int h = thread.warp(); h < work.heads; h += thread.warps()) weigh(thread, work, h);
    thread.barrier();
    add_values(thread, work);
  }

 private:
  static constexpr int kKeyThreads = 8;  // that form one product of a query and a key
  static constexpr int kAtOnce = 4;      // rows of the cache that a thread reads before it computes with them

  using Columns = std::conditional_t<kWide == 4, Four<T>, One<T>>;
  struct Batch {
    Columns of[kAtOnce];
  };

  // The rows of the piece in the cache.
  struct Rows {
    SharedArray<const T*> first;  // where each begins
    int width;
    const T* relative;  // added by distance; or null
  };

  // What the block works on, and what its threads share.
  struct Piece {
    int64_t number;
    int row, count;   // count: of visible keys
    int position;     // of the query
    int head, heads;  // of queries
    SharedArray<int> distances;
    Rows keys, values;
    SharedArray<T> weights;  // [count, kHeads]; at first the products of queries and keys
    SharedArray<T> sums;     // of values, by group of threads

    ATTUNE_DEVICE int key(int u) const { return u < count ? u : count - 1; }
  };

  ATTUNE_HOST_DEVICE static int parts_of_group(int group) { return (group + kHeads - 1) / kHeads; }

  ATTUNE_DEVICE static Columns read(const T* row, int c) { return read_group<Columns>(row, c); }

  // Columns c ... c + kWide - 1 of rows u, u + step, ...; beyond the last row they are those of the last row.
  ATTUNE_DEVICE Batch read(const Piece& work, const Rows& rows, int u, int step, int c) const {
    Batch batch;
    ATTUNE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) batch.of[j] = read(rows.first[work.key(u + j * step)], c);
    if (rows.relative == nullptr) return batch;
    ATTUNE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) {
      const int row = AttentionTerms<T>::table_row(work.distances[work.key(u + j * step)], in.terms.clip);
      const Columns added = read(rows.relative + int64_t{row} * rows.width, c);
      ATTUNE_UNROLL
      for (int e = 0; e < kWide; ++e) batch.of[j].value[e] += added.value[e];
    }
    return batch;
  }

  ATTUNE_DEVICE void form_products(Thread& thread, const Piece& work) const {
    const int step = thread.count() / kKeyThreads, first_column = thread.index() % kKeyThreads * kWide;
    const T* const queries = in.q + (int64_t{work.row} * in.terms.heads + work.head) * in.d_k;
    for (int first = 0; first < work.count; first += kAtOnce * step) {
      const int u = first + thread.index() / kKeyThreads;
      T sums[kAtOnce][static_cast<size_t>(kHeads)] = {};
      for (int c = first_column; c < in.d_k; c += kKeyThreads * kWide) {
        const Batch keys = read(work, work.keys, u, step, c);
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          const Columns query = read(queries + (h < work.heads ? h : 0) * in.d_k, c);
          ATTUNE_UNROLL
          for (int j = 0; j < kAtOnce; ++j) {
            ATTUNE_UNROLL
            for (int e = 0; e < kWide; ++e) sums[j][h] += query.value[e] * keys.of[j].value[e];
          }
        }
      }
      ATTUNE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          T sum = sums[j][h];
          ATTUNE_UNROLL
          for (int mask = 1; mask < kKeyThreads; mask *= 2) sum += thread.shuffle_xor(sum, mask);
          if (first_column == 0 && u + j * step < work.count) work.weights[(u + j * step) * kHeads + h] = sum;
        }
      }
    }
  }

  // The products of head h become weights relative to the largest.
  ATTUNE_DEVICE void weigh(Thread& thread, const Piece& work, int h) const {
    const int64_t head = work.head + h, place = work.number * in.terms.heads + head;
    T largest = -infinity<T>(), sum = 0;
    for (int u = thread.lane(); u < work.count; u += kWarp) {
      T& score = work.weights[u * kHeads + h];
      score = in.terms.score(score, work.head + h, work.distances[u]).value;
      largest = Largest{}(largest, score);
    }
    largest = thread.warp_reduce(largest, Largest{});
    const T shift = largest == -infinity<T>() ? T{0} : largest;  // a piece without a visible key has weights 0, not NaN
    T* const kept =
        in.weights == nullptr ? nullptr : in.weights + (int64_t{work.row} * in.terms.heads + head) * in.most_keys;
    for (int u = thread.lane(); u < work.count; u += kWarp) {
      T& weight = work.weights[u * kHeads + h];
      weight = std::exp(weight - shift);
      sum += weight;
      if (kept != nullptr) kept[work.position + work.distances[u]] = weight;
    }
    sum = thread.warp_reduce(sum, Sum{});
    if (thread.lane() != 0) return;
    in.largest[place] = largest;
    in.sums[place] = sum;
  }

  // As many columns at a time as there are threads for. Where these are few, groups of threads divide the keys.
  ATTUNE_DEVICE void add_values(Thread& thread, const Piece& work) const {
    for (int first = 0; first < in.d_v; first += thread.count() * kWide) {
      const int left = (in.d_v - first) / kWide, of_group = left < thread.count() ? left : thread.count();
      const int width = of_group * kWide, groups = thread.count() / of_group;
      const int group = thread.index() / of_group, c = thread.index() % of_group * kWide;
      if (group < groups) {
        Columns sums[static_cast<size_t>(kHeads)] = {};
        for (int u = group; u < work.count; u += kAtOnce * groups) {
          const Batch values = read(work, work.values, u, groups, first + c);
          ATTUNE_UNROLL
          for (int j = 0; j < kAtOnce; ++j) {
            const bool exists = u + j * groups < work.count;
            ATTUNE_UNROLL
            for (int h = 0; h < kHeads; ++h) {
              const T weight = work.weights[work.key(u + j * groups) * kHeads + h];
              ATTUNE_UNROLL
              for (int e = 0; e < kWide; ++e) sums[h].value[e] += weight * (exists ? values.of[j].value[e] : T{0});
            }
          }
        }
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          ATTUNE_UNROLL
          for (int e = 0; e < kWide; ++e) work.sums[(group * kHeads + h) * width + c + e] = sums[h].value[e];
        }
      }
      thread.barrier();
      for (int i = thread.index(); i < work.heads * width; i += thread.count()) {
        T sum = 0;
        for (int g = 0; g < groups; ++g) sum += work.sums[g * kHeads * width + i];
        const int64_t place = work.number * in.terms.heads + work.head + i / width;
        in.partial[place * in.d_v + first + i % width] = sum;
      }
      thread.barrier();
    }
  }
};

}  // namespace attune::cuda
