#include "attune/kernels/attention/guided_attention.h"

#include <cmath>
#include <vector>

#include "attune/kernels/cuda/attention/attention_view.h"
#include "attune/kernels/cuda/block_sum.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

// A query with links.
struct LinkedRow {
  int32_t row, first_key, keys;
  int32_t first_link, links;
};

// Some keys of a sequence, and its linked rows.
struct KeysOfRows {
  int32_t first_key, keys;  // rows of k
  int32_t begin, end;       // of LinkedRow
};

// Head `head` of q and the head of k that it reads. Scores are float64, as on the CPU.
template <class T>
struct GuidedView {
  cuda::HeadsView<T> q, k;
  int head, key_head;
  const LinkedRow* rows;
  const int32_t* links;
  double scale, soft_cap;

  struct Score {
    double value, derivative;  // of the value by product * scale
  };
  ATTUNE_DEVICE Score score(const LinkedRow& row, int64_t key_row) const {
    const T* const x = q.at(row.row, head);
    const T* const y = k.at(key_row, key_head);
    T sum = 0;
    for (int c = 0; c < q.d; ++c) sum += x[c] * y[c];
    const double product = static_cast<double>(sum) * scale;
    if (soft_cap <= 0) return {product, 1};
    const double t = std::tanh(product / soft_cap);
    return {soft_cap * t, 1 - t * t};
  }

  /// The gradient of the row's loss by q . k, times `factor`.
  ATTUNE_DEVICE T gradient(const LinkedRow& row, int64_t key_row, double log_sum_exp, double factor) const {
    const Score s = score(row, key_row);
    double difference = std::exp(s.value - log_sum_exp);
    for (int l = 0; l < row.links; ++l)
      if (row.first_key + links[row.first_link + l] == key_row) difference -= 1.0 / row.links;
    return static_cast<T>(factor * difference * s.derivative * scale);
  }
};

// One block for each linked row: its loss and its logarithm.
template <class T>
struct GuidedForward {
  static constexpr int kThreads = 128;
  GuidedView<T> in;
  double* log_sum_exp;
  double* losses;  // of each linked row

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const LinkedRow row = in.rows[thread.block()];
    double largest = -cuda::infinity<double>();
    for (int j = thread.index(); j < row.keys; j += thread.count())
      largest = cuda::Largest{}(largest, in.score(row, row.first_key + j).value);
    largest = thread.reduce(largest, cuda::Largest{});
    double total = 0, linked = 0;
    for (int j = thread.index(); j < row.keys; j += thread.count())
      total += std::exp(in.score(row, row.first_key + j).value - largest);
    for (int l = thread.index(); l < row.links; l += thread.count())
      linked += in.score(row, row.first_key + in.links[row.first_link + l]).value;
    total = thread.reduce(total, cuda::Sum{});
    linked = thread.reduce(linked, cuda::Sum{});
    if (thread.index() != 0) return;
    const double log_sum = largest + std::log(total);
    log_sum_exp[row.row] = log_sum;
    losses[thread.block()] = log_sum - linked / row.links;
  }
};

struct SumOfLosses {
  static constexpr int kThreads = 256;
  const double* losses;
  int64_t count;
  double* sum;
  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const double total = cuda::block_sum(thread, count, [&](int64_t i) { return losses[i]; });
    if (thread.index() == 0) *sum = total;
  }
};

constexpr int kGuidedKeys = 64;  // whose gradients are in shared memory at one time

// One block for each linked row: its query's gradient.
template <class T>
struct GuidedQueryGradient {
  static constexpr int kThreads = 128;
  GuidedView<T> in;
  const double* log_sum_exp;
  double factor;
  cuda::HeadsView<T> dq;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const LinkedRow row = in.rows[thread.block()];
    const cuda::SharedArray<T> gradients = thread.shared<T>(kGuidedKeys);
    T* const to = dq.at(row.row, in.head);
    for (int first = 0; first < row.keys; first += kGuidedKeys) {
      const int keys = row.keys - first < kGuidedKeys ? row.keys - first : kGuidedKeys;
      thread.barrier();
      for (int j = thread.index(); j < keys; j += thread.count())
        gradients[j] = in.gradient(row, row.first_key + first + j, log_sum_exp[row.row], factor);
      thread.barrier();
      for (int c = thread.index(); c < in.q.d; c += thread.count()) {
        T sum = 0;
        for (int j = 0; j < keys; ++j) sum += gradients[j] * in.k.at(row.first_key + first + j, in.key_head)[c];
        to[c] += sum;
      }
    }
  }
};

// One block for kGuidedKeys keys of a sequence: their gradients, from one linked row after the other.
template <class T>
struct GuidedKeyGradient {
  static constexpr int kThreads = 128;
  GuidedView<T> in;
  const double* log_sum_exp;
  double factor;
  cuda::HeadsView<T> dk;
  const KeysOfRows* parts;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const KeysOfRows part = parts[thread.block()];
    const cuda::SharedArray<T> gradients = thread.shared<T>(kGuidedKeys);
    for (int r = part.begin; r < part.end; ++r) {
      const LinkedRow row = in.rows[r];
      thread.barrier();
      for (int j = thread.index(); j < part.keys; j += thread.count())
        gradients[j] = in.gradient(row, part.first_key + j, log_sum_exp[row.row], factor);
      thread.barrier();
      const T* const q = in.q.at(row.row, in.head);
      for (int e = thread.index(); e < part.keys * in.k.d; e += thread.count()) {
        const int j = e / in.k.d, c = e % in.k.d;
        dk.at(part.first_key + j, in.key_head)[c] += gradients[j] * q[c];
      }
    }
  }
};

// The linked rows, in the order of the sequences, and the keys whose gradients they add to.
struct GuidedRows {
  std::vector<LinkedRow> rows;
  std::vector<KeysOfRows> keys;

  explicit GuidedRows(const GuidedAttentionInputs& in) {
    for (size_t s = 0; s < static_cast<size_t>(in.sequences()); ++s) {
      const auto begin = static_cast<int32_t>(rows.size());
      for (int32_t row = in.query_offsets[s]; row < in.query_offsets[s + 1]; ++row) add_row(in, s, row);
      const auto end = static_cast<int32_t>(rows.size());
      for (int32_t key = in.key_offsets[s]; begin < end && key < in.key_offsets[s + 1]; key += kGuidedKeys)
        keys.push_back({key, std::min(in.key_offsets[s + 1] - key, kGuidedKeys), begin, end});
    }
  }

 private:
  void add_row(const GuidedAttentionInputs& in, size_t sequence, int32_t row) {
    const int32_t first = in.link_offsets[static_cast<size_t>(row)];
    const int32_t links = in.link_offsets[static_cast<size_t>(row) + 1] - first;
    const int32_t first_key = in.key_offsets[sequence];
    if (links > 0) rows.push_back({row, first_key, in.key_offsets[sequence + 1] - first_key, first, links});
  }
};

template <class T>
GuidedView<T> view_of(const GuidedAttentionInputs& in, const Tensor& rows, const Tensor& links) {
  return {.q = in.q,
          .k = in.k,
          .head = static_cast<int>(in.head),
          .key_head = static_cast<int>(in.head / (in.q.heads / in.k.heads)),
          .rows = static_cast<const LinkedRow*>(rows.raw()),
          .links = links.data<int32_t>(),
          .scale = in.scale,
          .soft_cap = in.soft_cap};
}

}  // namespace

void guided_attention_forward(Cuda device, const GuidedAttentionInputs& in, const Tensor& log_sum_exp,
                              const Tensor& sum) {
  const GuidedRows work(in);
  const auto count = static_cast<int64_t>(work.rows.size());
  cuda::clear(device, log_sum_exp.raw(), log_sum_exp.bytes());
  if (count == 0) return cuda::clear(device, sum.raw(), sum.bytes());
  const Tensor rows = cuda::structs_on_device<LinkedRow>(device, work.rows);
  const Tensor links = cuda::on_device(device, in.link_keys);
  const Tensor losses = Tensor::empty({count}, {DType::f64, Device(device)});
  dispatch_floating("guided_attention_loss", in.q.x.dtype(), [&]<class T>(T) {
    using Kernel = GuidedForward<T>;
    cuda::launch(device, "guided_attention_loss", {.blocks = count, .threads = Kernel::kThreads},
                 Kernel{view_of<T>(in, rows, links), log_sum_exp.data<double>(), losses.data<double>()});
  });
  cuda::launch(device, "guided_attention_loss", {.blocks = 1, .threads = SumOfLosses::kThreads},
               SumOfLosses{losses.data<double>(), count, sum.data<double>()});
}

void guided_attention_backward(Cuda device, const GuidedAttentionInputs& in, const Tensor& log_sum_exp, double factor,
                               const HeadColumns& dq, const HeadColumns& dk) {
  const GuidedRows work(in);
  if (work.rows.empty()) return;
  const Tensor rows = cuda::structs_on_device<LinkedRow>(device, work.rows);
  const Tensor keys = cuda::structs_on_device<KeysOfRows>(device, work.keys);
  const Tensor links = cuda::on_device(device, in.link_keys);
  dispatch_floating("guided_attention_loss", in.q.x.dtype(), [&]<class T>(T) {
    const GuidedView<T> view = view_of<T>(in, rows, links);
    const size_t shared = cuda::shared_bytes_of<T>(kGuidedKeys);
    cuda::launch(device, "guided_attention_loss",
                 {.blocks = static_cast<int64_t>(work.rows.size()),
                  .threads = GuidedQueryGradient<T>::kThreads,
                  .shared_bytes = shared},
                 GuidedQueryGradient<T>{view, log_sum_exp.data<double>(), factor, dq});
    cuda::launch(
        device, "guided_attention_loss",
        {.blocks = static_cast<int64_t>(work.keys.size()),
         .threads = GuidedKeyGradient<T>::kThreads,
         .shared_bytes = shared},
        GuidedKeyGradient<T>{view, log_sum_exp.data<double>(), factor, dk, static_cast<const KeysOfRows*>(keys.raw())});
  });
}

}  // namespace attune
