#include "attune/kernels/attention/attention.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/attention/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cpu/attention/attention_blocks_inl.h"
#include "attune/kernels/cpu/attention/attention_parts.h"
#include "attune/kernels/cpu/attention/attention_tile_inl.h"
#include "attune/kernels/cpu/attention/attention_tiles_inl.h"
#include "attune/kernels/cpu/for_type.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The task of a part has in.group() query heads.
template <class T>
void ForwardTiles(const AttentionForward<T>& arguments, std::span<const AttentionForwardPart> parts) {
  const hn::ScalableTag<T> d;
  TileForward<T> forward(arguments, static_cast<int64_t>(hn::Lanes(d)));
  for (const AttentionForwardPart& part : parts)
    forward.Run(Task<T>(arguments.in, arguments.in.group(), part.task), part);
}

// Tasks [begin, end), of `heads` query heads each.
template <class T>
void ForwardBlocks(const AttentionForward<T>& arguments, int64_t heads, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const AttentionPointers<T>& in = arguments.in;
  int64_t most_queries = 0;
  for (int64_t index = begin; index < end; ++index)
    most_queries = std::max(most_queries, Task<T>(in, heads, index).queries);
  BlockForward<T> forward(arguments, static_cast<int64_t>(hn::Lanes(d)), most_queries * heads);
  for (int64_t index = begin; index < end; ++index) forward.Run(Task<T>(in, heads, index));
}

template <class T>
void BackwardTiles(const AttentionBackward<T>& arguments, std::span<const AttentionBackwardPart> parts) {
  const hn::ScalableTag<T> d;
  TileBackward<T> backward(arguments, static_cast<int64_t>(hn::Lanes(d)));
  for (const AttentionBackwardPart& part : parts)
    backward.Run(Task<T>(arguments.in, arguments.in.group(), part.task), part);
}

// `tables`: what these tasks add to the gradients of the tables.
template <class T>
void BackwardBlocks(const AttentionBackward<T>& arguments, int64_t begin, int64_t end,
                    const TableGradients<T>& tables) {
  const hn::ScalableTag<T> d;
  BlockBackward<T> backward(arguments, static_cast<int64_t>(hn::Lanes(d)));
  for (int64_t index = begin; index < end; ++index) backward.Run(Task<T>(arguments.in, arguments.in.group(), index));
  backward.StoreTables(tables.relative_keys, tables.relative_values, tables.distance_bias);
}

// dots[row] = sum(d_out * out) of rows [begin, end) of all heads.
template <class T>
void RowDots(const AttentionBackward<T>& arguments, int64_t begin, int64_t end, T* dots) {
  const int64_t d_v = arguments.in.d_v;
  for (int64_t row = begin; row < end; ++row)
    dots[row] = Dot(hn::ScalableTag<T>(), arguments.out + row * d_v, arguments.d_out + row * d_v, d_v);
}

void ForwardTiles32(const AttentionForward<float>& a, std::span<const AttentionForwardPart> parts) {
  ForwardTiles(a, parts);
}
void ForwardTiles64(const AttentionForward<double>& a, std::span<const AttentionForwardPart> parts) {
  ForwardTiles(a, parts);
}
void ForwardBlocks32(const AttentionForward<float>& a, int64_t heads, int64_t begin, int64_t end) {
  ForwardBlocks(a, heads, begin, end);
}
void ForwardBlocks64(const AttentionForward<double>& a, int64_t heads, int64_t begin, int64_t end) {
  ForwardBlocks(a, heads, begin, end);
}
void BackwardTiles32(const AttentionBackward<float>& a, std::span<const AttentionBackwardPart> parts) {
  BackwardTiles(a, parts);
}
void BackwardTiles64(const AttentionBackward<double>& a, std::span<const AttentionBackwardPart> parts) {
  BackwardTiles(a, parts);
}
void BackwardBlocks32(const AttentionBackward<float>& a, int64_t begin, int64_t end, const TableGradients<float>& t) {
  BackwardBlocks(a, begin, end, t);
}
void BackwardBlocks64(const AttentionBackward<double>& a, int64_t begin, int64_t end, const TableGradients<double>& t) {
  BackwardBlocks(a, begin, end, t);
}
void RowDots32(const AttentionBackward<float>& a, int64_t begin, int64_t end, float* dots) {
  RowDots(a, begin, end, dots);
}
void RowDots64(const AttentionBackward<double>& a, int64_t begin, int64_t end, double* dots) {
  RowDots(a, begin, end, dots);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {

HWY_EXPORT(ForwardTiles32);
HWY_EXPORT(ForwardTiles64);
HWY_EXPORT(ForwardBlocks32);
HWY_EXPORT(ForwardBlocks64);
HWY_EXPORT(BackwardTiles32);
HWY_EXPORT(BackwardTiles64);
HWY_EXPORT(BackwardBlocks32);
HWY_EXPORT(BackwardBlocks64);
HWY_EXPORT(RowDots32);
HWY_EXPORT(RowDots64);

namespace {

// Runs [0, count) in groups. The grouping changes no result; the items of a group share scratch memory.
template <class Run>
void for_groups(int64_t count, Run&& run) {
  parallel_for(count, std::clamp<int64_t>(count / 64, 1, 16), run);
}
template <class Part, class Run>
void for_groups_of(const std::vector<Part>& parts, Run&& run) {
  for_groups(static_cast<int64_t>(parts.size()), [&](int64_t begin, int64_t end) {
    run(std::span(parts).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
}

template <class T>
void forward_blocks(const AttentionForward<T>& arguments) {
  const AttentionPointers<T>& in = arguments.in;
  // Heads that share a key head also share its copies, if there is enough else to do.
  const int64_t heads = in.sequences * in.kv_heads < 4 * thread_count() ? 1 : in.group();
  for_groups(in.sequences * (in.heads / heads), [&](int64_t begin, int64_t end) {
    for_type<T>(HWY_DYNAMIC_DISPATCH(ForwardBlocks32), HWY_DYNAMIC_DISPATCH(ForwardBlocks64))(arguments, heads, begin,
                                                                                              end);
  });
}

template <class T>
void run_backward_blocks(const AttentionBackward<T>& arguments, int64_t begin, int64_t end,
                         const TableGradients<T>& tables) {
  for_type<T>(HWY_DYNAMIC_DISPATCH(BackwardBlocks32), HWY_DYNAMIC_DISPATCH(BackwardBlocks64))(arguments, begin, end,
                                                                                              tables);
}

// Groups of tasks, at most 64 of them: each has tables of its own, which are added in the order of the groups, so that
// the sums do not depend on the number of threads.
template <class T>
void backward_with_tables(const AttentionBackward<T>& arguments) {
  const AttentionPointers<T>& in = arguments.in;
  const int64_t tasks = in.sequences * in.kv_heads, grain = std::max<int64_t>(divide_up(tasks, 64), 1);
  const int64_t keys_size = in.relative_keys ? (2 * in.clip + 1) * in.d_k : 0;
  const int64_t values_size = in.relative_values ? (2 * in.clip + 1) * in.d_v : 0;
  const int64_t bias_size = in.bias_elements();
  const int64_t groups = divide_up(tasks, grain), size = keys_size + values_size + bias_size;
  const auto buffer = allocate_buffer(static_cast<size_t>(groups * size) * sizeof(T));
  T* tables = static_cast<T*>(buffer->data());
  parallel_for(tasks, grain, [&](int64_t begin, int64_t end) {
    T* own = tables + begin / grain * size;
    run_backward_blocks(
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

template <class T>
void backward_tiles(const AttentionInputs& in, const AttentionBackward<T>& arguments) {
  for_groups_of(attention_backward_parts(in, thread_count()), [&](auto parts) {
    for_type<T>(HWY_DYNAMIC_DISPATCH(BackwardTiles32), HWY_DYNAMIC_DISPATCH(BackwardTiles64))(arguments, parts);
  });
}

// sum(d_out * out) of each row and head.
template <class T>
std::shared_ptr<Buffer> row_dots(const AttentionBackward<T>& arguments) {
  constexpr int64_t kRows = 1024;
  const AttentionPointers<T>& in = arguments.in;
  const int64_t rows = in.query_offsets[in.sequences] * in.heads;
  auto buffer = allocate_buffer(static_cast<size_t>(rows) * sizeof(T));
  T* const dots = static_cast<T*>(buffer->data());
  parallel_for(rows, kRows, [&](int64_t begin, int64_t end) {
    for_type<T>(HWY_DYNAMIC_DISPATCH(RowDots32), HWY_DYNAMIC_DISPATCH(RowDots64))(arguments, begin, end, dots);
  });
  return buffer;
}

}  // namespace

void attention_forward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) {
    const AttentionForward<T> arguments{
        .in = pointers_of<T>(in), .out = out.data<T>(), .log_sum_exp = log_sum_exp.data<T>()};
    if (!arguments.in.plain()) return forward_blocks(arguments);
    for_groups_of(attention_forward_parts(in), [&](auto parts) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(ForwardTiles32), HWY_DYNAMIC_DISPATCH(ForwardTiles64))(arguments, parts);
    });
  });
}

void attention_backward(Cpu, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients) {
  dispatch_floating("attention", out.dtype(), [&]<class T>(T) {
    AttentionBackward<T> arguments{.in = pointers_of<T>(in),
                                   .out = out.data<T>(),
                                   .log_sum_exp = log_sum_exp.data<T>(),
                                   .d_out = d_out.data<T>(),
                                   .dots = nullptr,
                                   .dq = begin_of<T>(gradients.dq),
                                   .dk = begin_of<T>(gradients.dk),
                                   .dv = begin_of<T>(gradients.dv),
                                   .d_relative_keys = data_or_null<T>(gradients.d_relative_keys),
                                   .d_relative_values = data_or_null<T>(gradients.d_relative_values),
                                   .d_distance_bias = data_or_null<T>(gradients.d_distance_bias)};
    const std::shared_ptr<Buffer> dots = row_dots(arguments);
    arguments.dots = static_cast<const T*>(dots->data());
    const AttentionPointers<T>& pointers = arguments.in;
    if (pointers.plain()) return backward_tiles(in, arguments);
    if (pointers.relative_keys || pointers.relative_values || pointers.distance_bias)
      return backward_with_tables(arguments);
    for_groups(pointers.sequences * pointers.kv_heads,
               [&](int64_t begin, int64_t end) { run_backward_blocks(arguments, begin, end, {}); });
  });
}

}  // namespace attune
#endif  // HWY_ONCE
