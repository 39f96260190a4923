#pragma once
// How threads share the rows of a normalisation.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "attune/base/rounding.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune::cuda {

// Kernels with one block for each row.
inline constexpr int kNormThreads = 512;

inline int norm_threads(int64_t columns) {
  constexpr int64_t kElementsOfThread = 4;
  return threads_for(columns, kNormThreads, kElementsOfThread);
}

// A row in the registers of a warp, as float32: each lane has kFours fours of it, kWarp fours apart.
template <int kFours>
struct WarpRow {
  static constexpr int64_t kColumns = kFours * 4 * kWarp;
  static constexpr int kOfLane = 4 * kFours;
  float value[static_cast<size_t>(kOfLane)] = {};

  template <class T>
  ATTUNE_DEVICE static WarpRow read(const T* from, int lane) {
    WarpRow row;
    ATTUNE_UNROLL for (int k = 0; k < kFours; ++k) {
      const Four<T> four = read_four(from, 4 * (k * kWarp + lane));
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) row.value[4 * k + i] = static_cast<float>(four.value[i]);
    }
    return row;
  }
  template <class T>
  ATTUNE_DEVICE void write(T* to, int lane) const {
    ATTUNE_UNROLL for (int k = 0; k < kFours; ++k) {
      Four<T> four;
      ATTUNE_UNROLL for (int i = 0; i < 4; ++i) four.value[i] = static_cast<T>(value[4 * k + i]);
      write_four(to, 4 * (k * kWarp + lane), four);
    }
  }
  // Sets each number to f(number, i), where i is its place in `value`.
  template <class F>
  ATTUNE_DEVICE void change(F&& f) {
    ATTUNE_UNROLL for (int i = 0; i < kOfLane; ++i) value[i] = f(value[i], i);
  }
  // The sum of f(number, i) over the row.
  template <class F>
  ATTUNE_DEVICE float sum(Thread& thread, F&& f) const {
    float all = 0;
    ATTUNE_UNROLL for (int i = 0; i < kOfLane; ++i) all += f(value[i], i);
    return thread.warp_reduce(all, Sum{});
  }
};

// Kernels with one warp for each row.
inline constexpr int kWarpNormThreads = 256;

inline LaunchShape warp_for_each_row(int64_t rows) {
  constexpr int64_t kRowsOfBlock = kWarpNormThreads / kWarp;
  return {.blocks = divide_up(rows, kRowsOfBlock), .threads = kWarpNormThreads};
}

// Calls f with the number of fours that each lane of a warp has of a row, as a constant, and returns true. Returns
// false if a warp cannot hold such rows: it holds those of 128, 256, ... 1024 columns.
template <class F, int... kBefore>
bool for_fours_of_lane(int64_t columns, std::integer_sequence<int, kBefore...> /*numbers*/, F&& f) {
  return ((columns == WarpRow<kBefore + 1>::kColumns && (f(std::integral_constant<int, kBefore + 1>{}), true)) || ...);
}
template <class F>
bool for_fours_of_lane(int64_t columns, F&& f) {
  return for_fours_of_lane(columns, std::make_integer_sequence<int, 8>{}, std::forward<F>(f));
}

template <class... T>
bool have_fours(const T*... pointers) {
  return (has_fours(pointers) && ...);
}

}  // namespace attune::cuda
