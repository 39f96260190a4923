#include "attune/kernels/cross_entropy.h"

#include <cmath>

#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/gemm/column_sums.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

constexpr int kRowThreads = 1024;
constexpr int64_t kElementsOfThread = 8;

cuda::LaunchShape shape_of(const CrossEntropyInputs& in) {
  return {.blocks = in.logits.size(0), .threads = cuda::threads_for(in.class_count(), kRowThreads, kElementsOfThread)};
}

template <class T>
struct Place {
  T value;
  int32_t column;
};

// The largest value; of equal ones the first.
struct FirstLargest {
  template <class T>
  ATTUNE_DEVICE Place<T> operator()(const Place<T>& a, const Place<T>& b) const {
    if (a.value == b.value) return a.column < b.column ? a : b;
    return a.value > b.value ? a : b;
  }
};

template <class T>
struct RowInputs {
  const T* logits;
  const int32_t* labels;
  int32_t ignore_index;
  double smoothing;
  int64_t columns, row_size;
  int64_t in_fours;  // the first `in_fours` columns can be read and written as Fours

  ATTUNE_DEVICE const T* row(int64_t r) const { return logits + r * row_size; }
};

template <class T, class Out = T>
RowInputs<T> inputs_of(const CrossEntropyInputs& in, const Out* d_logits = nullptr) {
  const T* const logits = in.logits.data<T>();
  const int64_t columns = in.class_count(), row_size = in.logits.size(1);
  const bool fours = row_size % 4 == 0 && cuda::has_fours(logits) && cuda::has_fours(d_logits);
  return {logits,   in.labels.data<int32_t>(),  in.ignore_index, in.label_smoothing, columns,
          row_size, fours ? columns / 4 * 4 : 0};
}

// How many numbers a Group has, which is One or Four.
template <template <class> class Group>
constexpr int kWidth = sizeof(Group<float>) / sizeof(float);

// Calls work(group, c) for each of this thread's groups of columns begin ... end - 1, in ascending order; a group
// begins with x[c]. Reads several groups before it works on the first of them.
template <template <class> class Group, class T, class Work>
ATTUNE_DEVICE void for_groups(const cuda::Thread& thread, const T* x, int64_t begin, int64_t end, const Work& work) {
  constexpr int kBatch = sizeof(Group<T>) > 16 ? 2 : 4;
  const int64_t step = int64_t{kWidth<Group>} * thread.count();
  for (int64_t first = begin + kWidth<Group> * thread.index(); first < end; first += kBatch * step) {
    Group<T> groups[kBatch];
    ATTUNE_UNROLL
    for (int n = 0; n < kBatch; ++n)
      if (first + n * step < end) groups[n] = cuda::read_group<Group<T>>(x, first + n * step);
    ATTUNE_UNROLL
    for (int n = 0; n < kBatch; ++n)
      if (first + n * step < end) work(groups[n], first + n * step);
  }
}

// The same for all columns of the row x.
template <class T, class Work>
ATTUNE_DEVICE void for_columns(const cuda::Thread& thread, const RowInputs<T>& in, const T* x, const Work& work) {
  for_groups<cuda::Four>(thread, x, 0, in.in_fours, work);
  for_groups<cuda::One>(thread, x, in.in_fours, in.columns, work);
}

// -log softmax(x)[label], with the largest logit subtracted first; mixed with the mean over all classes. Every thread
// of the block gets the result.
template <class T>
ATTUNE_DEVICE CrossEntropyRow row_loss(cuda::Thread& thread, const RowInputs<T>& in, const T* x, int32_t label) {
  // One pass: the sum is relative to the largest logit so far of this thread.
  Place<T> largest{-cuda::infinity<T>(), INT32_MAX};
  T reference = 0, sum = 0, total = 0;
  for_columns(thread, in, x, [&]<template <class> class Group>(const Group<T>& at, int64_t c) {
    Place<T> first = largest;
    ATTUNE_UNROLL
    for (int n = 0; n < kWidth<Group>; ++n) {
      total += at.value[n];
      if (at.value[n] > first.value) first = {at.value[n], static_cast<int32_t>(c) + n};
    }
    if (first.value > largest.value) {
      sum *= std::exp(largest.value - first.value);
      largest = first;
      reference = first.value;
    }
    ATTUNE_UNROLL
    for (int n = 0; n < kWidth<Group>; ++n) sum += std::exp(at.value[n] - reference);
  });
  const bool has_terms = largest.value > -cuda::infinity<T>();
  largest = thread.reduce(largest, FirstLargest{});
  const T shift = largest.value == -cuda::infinity<T>() ? T{0} : largest.value;
  if (has_terms) sum *= std::exp(reference - shift);
  CrossEntropyRow row;
  row.shift = static_cast<double>(shift);
  row.sum = thread.reduce(static_cast<double>(sum), cuda::Sum{});
  row.correct = largest.column == label && x[label] == shift ? 1 : 0;
  const double log_sum = row.shift + std::log(row.sum);
  row.negative_log_likelihood = log_sum - static_cast<double>(x[label]);
  row.loss = row.negative_log_likelihood;
  if (in.smoothing > 0) {
    const double mean = thread.reduce(static_cast<double>(total), cuda::Sum{}) / static_cast<double>(in.columns);
    row.loss = (1 - in.smoothing) * row.negative_log_likelihood + in.smoothing * (log_sum - mean);
  }
  return row;
}

// scale * (p - epsilon / columns - (1 - epsilon) [c = label])
template <class T, class Out>
ATTUNE_DEVICE void row_gradient(cuda::Thread& thread, const RowInputs<T>& in, const CrossEntropyRow& row, double scale,
                                Out* d_logits) {
  const int32_t label = in.labels[thread.block()];
  const T* const x = in.row(thread.block());
  Out* const dx = d_logits + thread.block() * in.row_size;
  const bool ignored = label == in.ignore_index;
  const T shift = static_cast<T>(row.shift), factor = ignored ? T{0} : static_cast<T>(1 / row.sum);
  const T other = static_cast<T>(in.smoothing / static_cast<double>(in.columns));
  const T times = static_cast<T>(scale), at_label = other + static_cast<T>(1 - in.smoothing);
  for_columns(thread, in, x, [&]<template <class> class Group>(const Group<T>& at, int64_t c) {
    Group<Out> slopes;
    ATTUNE_UNROLL
    for (int n = 0; n < kWidth<Group>; ++n) {
      const T slope = std::exp(at.value[n] - shift) * factor - (c + n == label ? at_label : other);
      slopes.value[n] = static_cast<Out>(ignored ? T{0} : times * slope);
    }
    cuda::write_group(dx, c, slopes);
  });
  for (int64_t c = in.columns + thread.index(); c < in.row_size; c += thread.count()) dx[c] = static_cast<Out>(T{0});
}

template <class T>
struct LossRows {
  static constexpr int kThreads = kRowThreads;
  RowInputs<T> in;
  CrossEntropyRow* results;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int32_t label = in.labels[thread.block()];
    CrossEntropyRow row;
    if (label != in.ignore_index) row = row_loss(thread, in, in.row(thread.block()), label);
    if (thread.index() == 0) results[thread.block()] = row;
  }
};

template <class T, class Out>
struct GradientRows {
  static constexpr int kThreads = kRowThreads;
  RowInputs<T> in;
  const CrossEntropyRow* results;
  double scale;
  Out* d_logits;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    row_gradient(thread, in, results[thread.block()], scale, d_logits);
  }
};

// Both at once: the second pass over a row finds it in the cache.
template <class T, class Out>
struct LossAndGradientRows {
  static constexpr int kThreads = kRowThreads;
  RowInputs<T> in;
  CrossEntropyRow* results;
  double scale;
  Out* d_logits;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int32_t label = in.labels[thread.block()];
    CrossEntropyRow row;
    if (label != in.ignore_index) row = row_loss(thread, in, in.row(thread.block()), label);
    thread.barrier();  // all have read the label's logit
    if (thread.index() == 0) results[thread.block()] = row;
    row_gradient(thread, in, row, scale, d_logits);
  }
};

struct Result : cuda::ReadElement<double> {
  const double* results;
  explicit Result(const double* numbers) : results(numbers) {}
  ATTUNE_DEVICE double read(int64_t row, int64_t column) const { return results[row * kCrossEntropyNumbers + column]; }
};

}  // namespace

void cross_entropy_forward(Cuda device, const CrossEntropyInputs& in, const Tensor& results) {
  dispatch_floating("cross_entropy", in.logits.dtype(), [&]<class T>(T) {
    cuda::launch(device, "cross_entropy", shape_of(in), LossRows<T>{inputs_of<T>(in), cross_entropy_rows(results)});
  });
}

void cross_entropy_backward(Cuda device, const CrossEntropyInputs& in, const Tensor& results, double scale,
                            const Tensor& d_logits) {
  with_gradient_types("cross_entropy", in.logits, d_logits, [&]<class T, class Out>(T, Out) {
    Out* const dx = d_logits.data<Out>();
    cuda::launch(device, "cross_entropy", shape_of(in),
                 GradientRows<T, Out>{inputs_of<T>(in, dx), cross_entropy_rows(results), scale, dx});
  });
}

void cross_entropy_loss(Cuda device, const CrossEntropyInputs& in, double scale, const Tensor& results,
                        const Tensor& d_logits) {
  with_gradient_types("cross_entropy", in.logits, d_logits, [&]<class T, class Out>(T, Out) {
    Out* const dx = d_logits.data<Out>();
    cuda::launch(device, "cross_entropy", shape_of(in),
                 LossAndGradientRows<T, Out>{inputs_of<T>(in, dx), cross_entropy_rows(results), scale, dx});
  });
}

void cross_entropy_totals(Cuda device, const Tensor& results, const Tensor& totals) {
  cuda::sum_columns<double>(device, "cross_entropy", results.size(0), kCrossEntropyNumbers,
                            Result(results.data<double>()), cuda::StoreColumn<double>{totals.data<double>()});
}

}  // namespace attune
