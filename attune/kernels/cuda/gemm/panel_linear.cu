#include "attune/kernels/gemm/panel_linear.h"

#include <algorithm>
#include <cmath>

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/gemm/column_lists.h"
#include "attune/kernels/cuda/gemm/panel_products.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/rows.h"

namespace attune {
namespace {

constexpr int kThreadsOfPanel = cuda::kChains * kPanelOutputs;  // thread 16 c + j has chain c of output j
constexpr int64_t kRowsOfBlock = 4;                             // that share what is read of the weight

// What one part of the product is written to.
struct Result {
  const float* bias;  // or null
  float* y;
  int64_t width, column;
  Activation activation;
  ATTUNE_DEVICE void write(int64_t row, int64_t o, float product) const {
    y[row * width + column + o] = cuda::activation_of(activation, product + (bias != nullptr ? bias[o] : 0.0f));
  }
};

// One block for a panel and kRowsOfBlock rows.
template <class X>
struct NumberProduct {
  static constexpr int kThreads = kThreadsOfPanel;
  cuda::PanelReader weight;
  const X* x;
  int64_t rows;
  Result result;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const cuda::SharedArray<float> parts = thread.shared<float>(kThreads * kRowsOfBlock);
    const int64_t panels = panel_count(weight.out), j = thread.index() % kPanelOutputs;
    const int64_t chain = thread.index() / kPanelOutputs, o = thread.block() % panels * kPanelOutputs + j;
    const int64_t first = thread.block() / panels * kRowsOfBlock;
    float sums[kRowsOfBlock] = {};
    for (int64_t k = chain; k < weight.in; k += cuda::kChains) {
      const float w = weight.number(o, k);
      for (int64_t r = 0; r < kRowsOfBlock; ++r)
        if (first + r < rows) sums[r] = std::fma(static_cast<float>(x[(first + r) * weight.in + k]), w, sums[r]);
    }
    for (int64_t r = 0; r < kRowsOfBlock; ++r) parts[r * kThreads + thread.index()] = sums[r];
    thread.barrier();
    const int64_t r = chain;  // one thread for each result
    if (r >= kRowsOfBlock || first + r >= rows || o >= weight.out) return;
    float sum = parts[r * kThreads + j];
    for (int64_t c = 1; c < cuda::kChains; ++c) sum += parts[r * kThreads + c * kPanelOutputs + j];
    result.write(first + r, o, sum);
  }
};

// A block keeps the terms of at most this many groups at a time, 16 KiB.
constexpr int64_t kGroupsAtOnce = 256;
constexpr int64_t groups_at_once(int64_t groups) {
  return groups < kGroupsAtOnce ? groups : kGroupsAtOnce;
}

// One block for a panel and a row of integers. With 8 bits, thread 16 c + j adds every sixteenth part of the only
// group; with 4 bits it has every sixteenth group, whose terms are added in their order.
struct IntegerProduct {
  static constexpr int kThreads = kThreadsOfPanel;
  cuda::PanelReader weight;
  cuda::QuantisedRows x;
  Result result;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t panels = panel_count(weight.out), j = thread.index() % kPanelOutputs;
    const int64_t chain = thread.index() / kPanelOutputs, o = thread.block() % panels * kPanelOutputs + j;
    const int64_t row = thread.block() / panels;
    const bool writes = chain == 0 && o < weight.out;
    const int64_t known = o < weight.out ? o : weight.out - 1;  // outputs beyond the weight have no scale
    if (weight.format == WeightFormat::int8) {
      const cuda::SharedArray<int32_t> parts = thread.shared<int32_t>(kThreads);
      int32_t sum = 0;
      for (int64_t q = chain; q < x.stride / 4; q += cuda::kChains)
        sum = cuda::dot_of_bytes(x.quad(row, q), weight.quad(o, q), sum);
      parts[thread.index()] = sum;
      thread.barrier();
      if (!writes) return;
      for (int64_t c = 1; c < cuda::kChains; ++c) sum += parts[c * kPanelOutputs + j];
      const float scale = cuda::rounded_product(weight.scale(o, 0), x.scales[row]);
      result.write(row, o, cuda::rounded_product(static_cast<float>(sum), scale));
      return;
    }
    const cuda::SharedArray<float> terms = thread.shared<float>(groups_at_once(x.groups) * kPanelOutputs);
    float sum = 0;
    for (int64_t first = 0; first < x.groups; first += kGroupsAtOnce) {
      const int64_t end = first + kGroupsAtOnce < x.groups ? first + kGroupsAtOnce : x.groups;
      for (int64_t group = first + chain; group < end; group += cuda::kChains)
        terms[(group - first) * kPanelOutputs + j] = cuda::group_term(weight, x, row, known, group);
      thread.barrier();
      if (writes)
        for (int64_t group = first; group < end; ++group) sum += terms[(group - first) * kPanelOutputs + j];
      thread.barrier();
    }
    if (writes) result.write(row, o, sum);
  }
};

// One block for a group of a row. panel_linear.h has the definition.
template <class X>
struct QuantiseRows {
  static constexpr int kThreads = 256;
  const X* x;
  int8_t* numbers;
  float* scales;
  int64_t in, stride, groups, group;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t row = thread.block() / groups, begin = thread.block() % groups * group;
    const int64_t end = begin + group < in ? begin + group : in;
    const int64_t padded = begin + group < in ? begin + group : stride;
    float largest = 0, infinite = 0;
    for (int64_t k = begin + thread.index(); k < end; k += thread.count()) {
      const float value = static_cast<float>(x[row * in + k]);
      if (!(value - value == 0.0f)) infinite = 1;
      if (largest < std::fabs(value)) largest = std::fabs(value);
    }
    largest = thread.reduce(largest, cuda::Largest{});
    const bool finite = thread.reduce(infinite, cuda::Largest{}) == 0.0f;
    const bool usable = finite && largest >= cuda::kLeastNormal * 127;
    for (int64_t k = begin + thread.index(); k < padded; k += thread.count()) {
      const bool there = usable && k < end;
      const float value = there ? cuda::rounded_product(static_cast<float>(x[row * in + k]), 127 / largest) : 0.0f;
      numbers[row * stride + k] = static_cast<int8_t>(std::nearbyint(value));
    }
    if (thread.index() == 0)
      scales[row * groups + begin / group] = !finite ? std::nanf("") : usable ? largest / 127 : 0.0f;
  }
};

// Rows of x in 8 bits, if the weight has integers.
class Quantised {
 public:
  Quantised(Cuda device, const Tensor& x, const Panels& weight) {
    if (!is_quantised(weight.format)) return;
    const int64_t rows = as_rows(x).rows, in = weight.in, stride = divide_up(in, kGroupInputs) * kGroupInputs;
    const int64_t group = weight.format == WeightFormat::int4 ? kGroupInputs : std::max<int64_t>(in, 1);
    const int64_t groups = divide_up(in, group);
    numbers_ = Tensor::empty({rows, stride}, {DType::u8, Device(device)});
    scales_ = Tensor::empty({rows, groups}, {DType::f32, Device(device)});
    rows_ = {static_cast<const int8_t*>(numbers_.raw()), scales_.data<float>(),
             weight.format == WeightFormat::int4 ? stride : divide_up(in, 4) * 4, groups, group};
    for_storage_dtype("panel_linear", x.dtype(), [&]<class X>(X) {
      using Kernel = QuantiseRows<X>;
      cuda::launch(device, "panel_linear",
                   {.blocks = rows * groups, .threads = cuda::threads_for(group, Kernel::kThreads)},
                   Kernel{x.data<X>(), static_cast<int8_t*>(numbers_.raw()), scales_.data<float>(), in, rows_.stride,
                          groups, group});
    });
  }
  const cuda::QuantisedRows& rows() const { return rows_; }

 private:
  Tensor numbers_, scales_;
  cuda::QuantisedRows rows_{};
};

void multiply(Cuda device, const Tensor& x, const cuda::QuantisedRows& quantised, const Panels& weight,
              const Result& result) {
  const int64_t rows = as_rows(x).rows, panels = panel_count(weight.out);
  if (is_quantised(weight.format)) {
    const size_t shared = weight.format == WeightFormat::int8
                              ? cuda::shared_bytes_of<int32_t>(kThreadsOfPanel)
                              : cuda::shared_bytes_of<float>(groups_at_once(quantised.groups) * kPanelOutputs);
    return cuda::launch(device, "panel_linear",
                        {.blocks = rows * panels, .threads = kThreadsOfPanel, .shared_bytes = shared},
                        IntegerProduct{cuda::PanelReader(weight), quantised, result});
  }
  for_storage_dtype("panel_linear", x.dtype(), [&]<class X>(X) {
    cuda::launch(device, "panel_linear",
                 {.blocks = divide_up(rows, kRowsOfBlock) * panels,
                  .threads = kThreadsOfPanel,
                  .shared_bytes = cuda::shared_bytes_of<float>(kThreadsOfPanel * kRowsOfBlock)},
                 NumberProduct<X>{cuda::PanelReader(weight), x.data<X>(), rows, result});
  });
}

template <class X>
struct PanelColumns {
  cuda::PanelReader weight;
  const X* x;
  cuda::QuantisedRows quantised;
  const float* bias;  // or null
  cuda::ColumnLists lists;
  float* y;
  int64_t width;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / width, column = lists.column(row, i % width);
    if (column < 0) {
      y[i] = -cuda::infinity<float>();
      return;
    }
    y[i] = cuda::panel_dot(weight, x, quantised, row, column) + (bias != nullptr ? bias[column] : 0.0f);
  }
};

}  // namespace

void panel_linear(Cuda device, const Tensor& x, std::span<const PanelPart> parts, Activation activation) {
  if (parts.empty()) return;
  const Quantised quantised(device, x, *parts[0].weight);  // all parts have as many inputs, and one quantised format
  for (const PanelPart& part : parts)
    multiply(device, x, quantised.rows(), *part.weight,
             {data_or_null<float>(part.bias), part.y.data<float>(), part.y.size(-1), part.column, activation});
}

void panel_linear_columns(Cuda device, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y) {
  const Quantised quantised(device, x, weight);
  const cuda::ColumnTables tables(device, groups, y.size(0));
  for_storage_dtype("panel_linear_columns", x.dtype(), [&]<class X>(X) {
    cuda::for_each_element(device, "panel_linear_columns", y.numel(),
                           PanelColumns<X>{cuda::PanelReader(weight), x.data<X>(), quantised.rows(),
                                           data_or_null<float>(bias), tables.lists(), y.data<float>(), y.size(1)});
  });
}

}  // namespace attune
