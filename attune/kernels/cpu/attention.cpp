#include "attune/kernels/attention.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/attention_blocks_inl.h"
#include "attune/kernels/cpu/attention_tile_inl.h"
#include "attune/kernels/cpu/attention_tiles_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
int64_t MostQueries(const AttentionPointers<T>& in, int64_t begin, int64_t end) {
  int64_t most = 0;
  for (int64_t index = begin; index < end; ++index) most = std::max(most, Task<T>(in, index).queries);
  return most;
}

template <class T>
void Forward(const AttentionForward<T>& arguments, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionPointers<T>& in = arguments.in;
  if (!in.plain()) {
    BlockForward<T> forward(arguments, lanes, MostQueries(in, begin, end));
    for (int64_t index = begin; index < end; ++index) forward.Run(Task<T>(in, index));
    return;
  }
  const Scratch<T> scratch(kTile * (in.d_k + 2 * RoundUp(in.d_v, lanes) + kTile));
  for (int64_t index = begin; index < end; ++index) {
    const Task<T> task(in, index);
    for (int64_t head = task.first_head(); head < task.last_head(); ++head) ForwardHead(task, head, arguments, scratch);
  }
}

// `tables`: what these tasks add to the gradients of the tables.
template <class T>
void Backward(const AttentionBackward<T>& arguments, int64_t begin, int64_t end, const TableGradients<T>& tables) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const AttentionPointers<T>& in = arguments.in;
  const int64_t most_queries = MostQueries(in, begin, end);
  if (!in.plain()) {
    BlockBackward<T> backward(arguments, lanes, most_queries);
    for (int64_t index = begin; index < end; ++index) backward.Run(Task<T>(in, index));
    backward.StoreTables(tables.relative_keys, tables.relative_values, tables.distance_bias);
    return;
  }
  const Scratch<T> scratch(BackwardTiles<T>::elements(in, lanes, most_queries));
  BackwardTiles<T> tiles(in, lanes, most_queries, scratch);
  for (int64_t index = begin; index < end; ++index) BackwardTask(Task<T>(in, index), arguments, tiles);
}

void ForwardF32(const AttentionForward<float>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void ForwardF64(const AttentionForward<double>& a, int64_t begin, int64_t end) {
  Forward(a, begin, end);
}
void BackwardF32(const AttentionBackward<float>& a, int64_t begin, int64_t end, const TableGradients<float>& tables) {
  Backward(a, begin, end, tables);
}
void BackwardF64(const AttentionBackward<double>& a, int64_t begin, int64_t end, const TableGradients<double>& tables) {
  Backward(a, begin, end, tables);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(ForwardF32);
HWY_EXPORT(ForwardF64);
HWY_EXPORT(BackwardF32);
HWY_EXPORT(BackwardF64);

namespace {

void run_forward(const AttentionForward<float>& arguments, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ForwardF32)(arguments, begin, end);
}
void run_forward(const AttentionForward<double>& arguments, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ForwardF64)(arguments, begin, end);
}
void run_backward(const AttentionBackward<float>& arguments, int64_t begin, int64_t end,
                  const TableGradients<float>& tables) {
  HWY_DYNAMIC_DISPATCH(BackwardF32)(arguments, begin, end, tables);
}
void run_backward(const AttentionBackward<double>& arguments, int64_t begin, int64_t end,
                  const TableGradients<double>& tables) {
  HWY_DYNAMIC_DISPATCH(BackwardF64)(arguments, begin, end, tables);
}

// Tasks are independent, so that how they are grouped changes no result; a group amortises its scratch memory.
template <class T, class Run>
void for_each_task(const AttentionPointers<T>& in, Run&& run) {
  const int64_t tasks = in.sequences * in.kv_heads;
  parallel_for(tasks, std::clamp<int64_t>(tasks / 64, 1, 16), run);
}

// Groups of tasks, at most 64 of them: each has tables of its own, which are added in the order of the groups, so that
// the sums do not depend on the number of threads.
template <class T>
void backward_with_tables(const AttentionBackward<T>& arguments) {
  const AttentionPointers<T>& in = arguments.in;
  const int64_t tasks = in.sequences * in.kv_heads, grain = std::max<int64_t>((tasks + 63) / 64, 1);
  const int64_t keys_size = in.relative_keys ? (2 * in.clip + 1) * in.d_k : 0;
  const int64_t values_size = in.relative_values ? (2 * in.clip + 1) * in.d_v : 0;
  const int64_t bias_size = in.bias_elements();
  const int64_t groups = (tasks + grain - 1) / grain, size = keys_size + values_size + bias_size;
  const auto buffer = allocate_buffer(static_cast<size_t>(groups * size) * sizeof(T));
  T* tables = static_cast<T*>(buffer->data());
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    T* own = tables + begin / grain * size;
    run_backward(
        arguments, begin, end,
        {.relative_keys = own, .relative_values = own + keys_size, .distance_bias = own + keys_size + values_size});
  });
  const auto add_up = [&](T* to, int64_t count, int64_t at) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = 0;
      for (int64_t g = 0; g < groups; ++g) to[i] += tables[g * size + at + i];
    }
  };
  add_up(arguments.d_relative_keys, keys_size, 0);
  add_up(arguments.d_relative_values, values_size, keys_size);
  add_up(arguments.d_distance_bias, bias_size, keys_size + values_size);
}

}  // namespace

void attention_forward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) {
    const AttentionForward<T> arguments{
        .in = pointers_of<T>(in), .out = out.data<T>(), .log_sum_exp = log_sum_exp.data<T>()};
    for_each_task(arguments.in, [&](int64_t begin, int64_t end) { run_forward(arguments, begin, end); });
  });
}

void attention_backward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) {
    const AttentionBackward<T> arguments{.in = pointers_of<T>(in),
                                         .out = out.data<T>(),
                                         .log_sum_exp = log_sum_exp.data<T>(),
                                         .d_out = d_out.data<T>(),
                                         .dq = begin_of<T>(gradients.dq),
                                         .dk = begin_of<T>(gradients.dk),
                                         .dv = begin_of<T>(gradients.dv),
                                         .d_relative_keys = data_or_null<T>(gradients.d_relative_keys),
                                         .d_relative_values = data_or_null<T>(gradients.d_relative_values),
                                         .d_distance_bias = data_or_null<T>(gradients.d_distance_bias)};
    if (arguments.in.relative_keys || arguments.in.relative_values || arguments.in.distance_bias)
      return backward_with_tables(arguments);
    for_each_task(arguments.in, [&](int64_t begin, int64_t end) { run_backward(arguments, begin, end, {}); });
  });
}

}  // namespace attune
#endif  // HWY_ONCE
