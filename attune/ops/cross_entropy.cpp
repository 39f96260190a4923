#include "attune/ops/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/base/rounding.h"
#include "attune/kernels/cross_entropy.h"
#include "attune/kernels/gemm/column_sums.h"
#include "attune/kernels/gemm/linear_gradient.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/kernels/prediction_pairs.h"
#include "attune/kernels/scale.h"
#include "attune/ops/gather.h"
#include "attune/ops/linear/linear_check.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/rows.h"
#include "attune/ops/scale.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_pairs(std::string_view op, std::span<const int32_t> labels, double r_drop) {
  if (!(r_drop >= 0 && std::isfinite(r_drop)))
    fail<ConfigError>("{}: r_drop = {}: needs a finite number from 0", op, r_drop);
  if (r_drop == 0) return;
  const size_t half = labels.size() / 2;
  if (labels.size() % 2 != 0)
    fail<ShapeError>("{}: {} rows cannot be paired; r_drop needs an even number", op, labels.size());
  for (size_t i = 0; i < half; ++i)
    if (labels[i] != labels[i + half])
      fail<DataError>("{}: rows {} and {} are a pair for r_drop, but have the labels {} and {}", op, i, i + half,
                      labels[i], labels[i + half]);
}

// Counts the labels that are not ignored.
int64_t check_labels(std::string_view op, const Indices& labels, int64_t rows, int64_t vocabulary,
                     const CrossEntropyOptions& options) {
  if (labels.size() != rows) fail<ShapeError>("{}: {} rows but {} labels", op, rows, labels.size());
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    fail<ConfigError>("{}: label_smoothing is {}, needs 0 <= epsilon <= 1", op, options.label_smoothing);
  int64_t count = 0;
  const std::span<const int32_t> values = labels.values();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == options.ignore_index) continue;
    if (values[i] < 0 || values[i] >= vocabulary)
      fail<DataError>("{}: label {} at position {} is outside the vocabulary of {}", op, values[i], i, vocabulary);
    ++count;
  }
  check_pairs(op, values, options.r_drop);
  return count;
}

double scale_of(const CrossEntropyOptions& options, int64_t labels) {
  if (options.scale != 0) return options.scale;
  return 1.0 / static_cast<double>(std::max<int64_t>(labels, 1));
}

// The numbers that cross_entropy_totals() wrote, which stay on their device.
CrossEntropy collect(const Tensor& totals, int64_t labels, double scale, DType dtype) {
  const Tensor numbers = totals.reshape({kCrossEntropyNumbers});
  const auto total = [&](size_t offset) {  // in CrossEntropyRow
    const auto column = static_cast<int64_t>(offset / sizeof(double));
    return numbers.rows(column, column + 1);
  };
  return {.loss = scaled(total(offsetof(CrossEntropyRow, loss)), scale).to(dtype).reshape({}),
          .sum_negative_log_likelihood = total(offsetof(CrossEntropyRow, negative_log_likelihood)).reshape({}),
          .labels = labels,
          .correct = total(offsetof(CrossEntropyRow, correct)).reshape({}),
          .sum_divergence = total(offsetof(CrossEntropyRow, divergence)).reshape({})};
}

CrossEntropyInputs inputs_of(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options,
                             int64_t classes) {
  return {.logits = logits,
          .labels = labels,
          .ignore_index = options.ignore_index,
          .label_smoothing = options.label_smoothing,
          .classes = classes};
}

// The loss of a pair is r_drop / 2 times its divergences; each of its two rows has half of that.
PredictionPairs pairs_of(const CrossEntropyInputs& in, const Tensor& results, double r_drop) {
  return {.in = in, .results = results, .weight = r_drop / 4};
}

// A tensor for the results of `rows` rows, or for their totals.
Tensor empty_results(int64_t rows, const Device& device) {
  return Tensor::empty({rows, kCrossEntropyNumbers}, {DType::f64, device});
}

// The rows of a piece. Each piece reads the weights three times and adds to their gradient: on a CPU the products run
// with 512 rows at 0.97 of the speed of the whole batch, with 128 at 0.8. A large vocabulary gets fewer rows, to save
// memory. A GPU needs more rows to be busy, and has no cache that holds the weights.
int64_t piece_rows(int64_t rows, int64_t vocabulary, const TensorOptions& options) {
  const bool on_gpu = options.device.kind() == Device::Kind::cuda;
  const int64_t bytes = int64_t{on_gpu ? 1024 : 128} << 20, most = on_gpu ? 8192 : 512;
  const int64_t fitting = bytes / std::max<int64_t>(1, vocabulary * static_cast<int64_t>(size_of(options.dtype)));
  return std::min(rows, std::clamp<int64_t>(fitting / 64 * 64, 256, most));
}

// The number of columns of the logits. A GPU multiplies bfloat16 matrices fast if each row begins at a multiple of 16
// bytes, so that columns of zeros are added there.
int64_t padded(int64_t vocabulary, const Device& device) {
  constexpr int64_t kMultiple = 64;
  return device.kind() == Device::Kind::cuda ? round_up(vocabulary, kMultiple) : vocabulary;
}

struct LinearInputs {
  Tensor x, weight, bias;
};

// The inputs and the gradient of the logits in the type of the products, and the logits of a piece.
struct Pieces {
  Tensor x, weight, bias;
  Tensor logits, d_logits;  // [rows of a piece, padded vocabulary]; one tensor if they have the same dtype. The
                            // second is undefined where no gradient is wanted
};

Pieces make_pieces(const LinearInputs& in, int64_t rows, bool with_gradient) {
  const auto& [x, weight, bias] = in;
  const TensorOptions options{x.dtype(), x.device()};
  if (!bfloat16_products() || x.dtype() != DType::f32) {
    const Tensor logits = Tensor::empty({rows, weight.size(0)}, options);
    return {x, x.dtype() == DType::f32 ? to_float32(weight) : weight, bias, logits, logits};
  }
  const int64_t columns = padded(weight.size(0), x.device());
  return {.x = to_bfloat16(x),
          .weight = stacked_in_bfloat16({&weight, 1}, columns),
          .bias = with_rows(bias, columns),
          .logits = Tensor::empty({rows, columns}, options),
          .d_logits = with_gradient ? Tensor::empty({rows, columns}, {DType::bf16, x.device()}) : Tensor{}};
}

// d_x, d_weight, d_bias, in the shapes of the pieces' inputs; undefined where none is needed. The pieces write every
// element; the first piece sets d_weight and d_bias, the others add to them.
Gradients make_gradients(const LinearInputs& in, const Pieces& pieces, bool recording) {
  const auto made = [&](const Tensor& input, const Tensor& padded) {
    if (!recording || !input.defined() || !requires_gradient(input)) return Tensor{};
    const Tensor gradient = Tensor::empty(padded.shape(), {input.dtype(), input.device()});
    return in.x.size(0) == 0 ? Tensor::zeros_like(gradient) : gradient;
  };
  return {made(in.x, pieces.x), made(in.weight, pieces.weight), made(in.bias, pieces.bias)};
}

// The gradients without the padding.
Gradients without_padding(const Gradients& gradients, int64_t vocabulary) {
  const auto part = [&](const Tensor& gradient) {
    return gradient.defined() ? gradient.rows(0, vocabulary) : gradient;
  };
  return {gradients[0], part(gradients[1]), part(gradients[2])};
}

// Adds the part of a piece to the gradient of the bias.
template <class D>
void add_bias_gradient(D device, const Tensor& d_logits, const Tensor& d_bias, bool accumulate) {
  if (d_logits.dtype() == d_bias.dtype()) return column_sums(device, d_logits, d_bias, accumulate);
  const Tensor part = Tensor::empty({1, d_logits.size(1)}, {d_bias.dtype(), d_bias.device()});
  linear_gradient(device, {.dy = d_logits, .d_bias = part});
  column_sums(device, part, d_bias, accumulate);
}

// Rows [begin, end) of x: the inputs of their loss, and the tensors for their results and for d_logits. With r_drop,
// the second half of the rows are the other predictions of the first.
struct Piece {
  int64_t begin, end;
  CrossEntropyInputs loss;
  Tensor d_logits, results;
  double r_drop;
};

// The results, and d_logits if they are needed.
template <class D>
void run_loss(D device, const Piece& piece, double scale, bool with_gradient) {
  if (piece.r_drop > 0) {
    const PredictionPairs pairs = pairs_of(piece.loss, piece.results, piece.r_drop);
    cross_entropy_forward(device, piece.loss, piece.results);
    pair_divergences(device, pairs);
    if (with_gradient) pair_gradients(device, pairs, scale, piece.d_logits);
  } else if (with_gradient) {
    cross_entropy_loss(device, piece.loss, scale, piece.results, piece.d_logits);
  } else {
    cross_entropy_forward(device, piece.loss, piece.results);
  }
}

template <class D>
void run_piece(D device, const Pieces& in, const Piece& piece, double scale, const Gradients& gradients) {
  const Tensor& d_x = gradients[0];
  const Tensor& d_weight = gradients[1];
  const Tensor& d_bias = gradients[2];
  const Tensor x = in.x.rows(piece.begin, piece.end);
  const bool first = piece.begin == 0;
  matmul(device, x, in.weight, in.bias, piece.loss.logits, {.transpose_b = true});
  run_loss(device, piece, scale, d_x.defined() || d_weight.defined() || d_bias.defined());
  if (d_x.defined()) matmul(device, piece.d_logits, in.weight, {}, d_x.rows(piece.begin, piece.end), {});
  if (d_weight.defined()) matmul(device, piece.d_logits, x, {}, d_weight, {.transpose_a = true, .accumulate = !first});
  if (d_bias.defined()) add_bias_gradient(device, piece.d_logits, d_bias, !first);
}

void check_linear(const LinearInputs& in) {
  constexpr std::string_view op = "linear_cross_entropy";
  const auto& [x, weight, bias] = in;
  const bool narrow = x.dtype() == DType::f32 && weight.dtype() == DType::bf16;
  if (!x.defined() || !weight.defined() || x.rank() != 2 || weight.rank() != 2 || x.size(1) != weight.size(1) ||
      (x.dtype() != weight.dtype() && !narrow))
    fail<ShapeError>("{}: input {} {} does not fit the weight {} {}", op, name_of(x.dtype()), x.shape().text(),
                     name_of(weight.dtype()), weight.shape().text());
  if (bias.defined() && (bias.rank() != 1 || bias.size(0) != weight.size(0) || bias.dtype() != x.dtype()))
    fail<ShapeError>("{}: weight {} {} does not fit the bias {} {}", op, name_of(weight.dtype()), weight.shape().text(),
                     name_of(bias.dtype()), bias.shape().text());
  if (!is_floating(x.dtype())) refuse_dtype(op, x.dtype());
  check_weight_gradient(op, weight);
  check_device(op, x, {weight, bias});
}

// The rows in an order in which each piece has both rows of its pairs: rows of the first half, then their partners.
Indices rows_of_paired_pieces(int64_t rows, int64_t piece) {
  std::vector<int32_t> order;
  for (int64_t begin = 0; begin < rows; begin += piece)
    for (const int64_t first : {begin / 2, begin / 2 + rows / 2})
      for (int64_t i = 0; i < std::min(piece, rows - begin) / 2; ++i) order.push_back(static_cast<int32_t>(first + i));
  return order;
}

Indices reordered(const Indices& labels, const Indices& order) {
  std::vector<int32_t> values;
  for (const int32_t row : order.values()) values.push_back(labels[row]);
  return values;
}

// The inputs have been checked; `count` labels are not ignored. With r_drop, each piece has both rows of its pairs.
CrossEntropy in_pieces(const LinearInputs& in, const Indices& labels, int64_t count,
                       const CrossEntropyOptions& options) {
  const auto& [x, weight, bias] = in;
  const int64_t n = x.size(0), vocabulary = weight.size(0);
  const double scale = scale_of(options, count);
  const int64_t step = piece_rows(n, vocabulary, {x.dtype(), x.device()});
  const bool recording = is_recording({x, weight, bias});
  const Pieces pieces = make_pieces(in, step, recording);
  const Gradients padded_gradients = make_gradients(in, pieces, recording);
  const Tensor all_labels = labels.on(x.device());
  const Tensor results = empty_results(n, x.device()), totals = empty_results(1, x.device());
  dispatch(x.device(), [&](auto device) {
    for (int64_t begin = 0; begin < n; begin += step) {
      const int64_t end = std::min(begin + step, n), rows = end - begin;
      const CrossEntropyInputs loss =
          inputs_of(pieces.logits.rows(0, rows), all_labels.rows(begin, end), options, vocabulary);
      run_piece(device, pieces,
                {.begin = begin,
                 .end = end,
                 .loss = loss,
                 .d_logits = pieces.d_logits.defined() ? pieces.d_logits.rows(0, rows) : Tensor{},
                 .results = results.rows(begin, end),
                 .r_drop = options.r_drop},
                scale, padded_gradients);
    }
    cross_entropy_totals(device, results, totals);
  });
  CrossEntropy result = collect(totals, count, scale, x.dtype());
  const Gradients gradients = without_padding(padded_gradients, vocabulary);
  record("linear_cross_entropy", {x, weight, bias}, result.loss, [gradients, on = x.device()](const Tensor& dy) {
    const double factor = dy.item();
    if (factor == 1) return gradients;
    dispatch(on, [&](auto device) {
      for (const Tensor& gradient : gradients)
        if (gradient.defined()) attune::scale(device, gradient, factor);
    });
    return gradients;
  });
  return result;
}

}  // namespace

double loss_scale(const Indices& labels, const CrossEntropyOptions& options) {
  const std::span<const int32_t> all = labels.values();
  return scale_of(options, std::ssize(all) - std::ranges::count(all, options.ignore_index));
}

CrossEntropy cross_entropy(const Tensor& logits, const Indices& labels, const CrossEntropyOptions& options) {
  const ProfileScope scope("cross_entropy");
  if (!logits.defined() || logits.rank() != 2)
    fail<ShapeError>("cross_entropy: the logits need two dimensions, found {}", logits.shape().text());
  if (!is_floating(logits.dtype())) refuse_dtype("cross_entropy", logits.dtype());
  const int64_t count = check_labels("cross_entropy", labels, logits.size(0), logits.size(1), options);
  const double scale = scale_of(options, count);
  const CrossEntropyInputs in = inputs_of(logits.detach(), labels.on(logits.device()), options, logits.size(1));
  const double r_drop = options.r_drop;
  const Tensor results = empty_results(logits.size(0), logits.device()), totals = empty_results(1, logits.device());
  dispatch(logits.device(), [&](auto device) {
    cross_entropy_forward(device, in, results);
    if (r_drop > 0) pair_divergences(device, pairs_of(in, results, r_drop));
    cross_entropy_totals(device, results, totals);
  });
  CrossEntropy result = collect(totals, count, scale, logits.dtype());
  record("cross_entropy", {logits}, result.loss, [in, scale, results, r_drop](const Tensor& dy) {
    Tensor d_logits = Tensor::empty_like(in.logits);
    const double factor = scale * dy.item();
    dispatch(d_logits.device(), [&](auto device) {
      if (r_drop > 0) return pair_gradients(device, pairs_of(in, results, r_drop), factor, d_logits);
      cross_entropy_backward(device, in, results, factor, d_logits);
    });
    return Gradients{d_logits};
  });
  return result;
}

CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Indices& labels,
                                  const CrossEntropyOptions& options) {
  const ProfileScope scope("linear_cross_entropy");
  check_linear({x, weight, bias});
  const int64_t count = check_labels("linear_cross_entropy", labels, x.size(0), weight.size(0), options);
  if (options.r_drop == 0) return in_pieces({x, weight, bias}, labels, count, options);
  const Indices order =
      rows_of_paired_pieces(x.size(0), piece_rows(x.size(0), weight.size(0), {x.dtype(), x.device()}));
  return in_pieces({gather(x, order), weight, bias}, reordered(labels, order), count, options);
}

}  // namespace attune
