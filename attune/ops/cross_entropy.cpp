#include "attune/ops/cross_entropy.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/kernels/column_sums.h"
#include "attune/kernels/cross_entropy.h"
#include "attune/kernels/linear_gradient.h"
#include "attune/kernels/matmul.h"
#include "attune/ops/precision.h"
#include "attune/ops/rows.h"

namespace attune {
namespace {

// Counts the labels that take part.
int64_t check_labels(std::string_view op, const Tensor& labels, int64_t rows, int64_t vocabulary,
                     const CrossEntropyOptions& options) {
  if (!labels.defined() || labels.rank() != 1 || labels.dtype() != DType::i32)
    fail<ShapeError>("{}: the labels need one dimension of int32, found {} {}", op,
                     labels.defined() ? name_of(labels.dtype()) : "nothing", labels.shape().text());
  if (labels.size(0) != rows) fail<ShapeError>("{}: {} rows but {} labels", op, rows, labels.size(0));
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    fail<ConfigError>("{}: label_smoothing is {}, needs 0 <= epsilon <= 1", op, options.label_smoothing);
  int64_t count = 0;
  const int32_t* values = labels.data<int32_t>();
  for (int64_t i = 0; i < rows; ++i) {
    if (values[i] == options.ignore_index) continue;
    if (values[i] < 0 || values[i] >= vocabulary)
      fail<DataError>("{}: label {} at position {} is outside the vocabulary of {}", op, values[i], i, vocabulary);
    ++count;
  }
  return count;
}

double scale_of(const CrossEntropyOptions& options, int64_t labels) {
  if (options.scale != 0) return options.scale;
  return labels > 0 ? 1.0 / static_cast<double>(labels) : 0;
}

CrossEntropy collect(const std::vector<CrossEntropyRow>& rows, int64_t labels, double scale,
                     const TensorOptions& like) {
  CrossEntropy result{.loss = {}, .labels = labels};
  double loss = 0;
  for (const CrossEntropyRow& row : rows) {
    loss += row.loss;
    result.sum_negative_log_likelihood += row.negative_log_likelihood;
    result.correct += row.correct ? 1 : 0;
  }
  result.loss = Tensor::full({}, loss * scale, like);
  return result;
}

template <class T>
CrossEntropyRows<T> rows_in(const Tensor& logits, const int32_t* labels, int64_t rows,
                            const CrossEntropyOptions& options) {
  return {.logits = logits.data<T>(),
          .labels = labels,
          .rows = rows,
          .columns = logits.size(1),
          .ignore_index = options.ignore_index,
          .label_smoothing = options.label_smoothing};
}

// Rows of a piece. Each piece reads the weights three times and adds to their gradient: with 512 rows the products run
// at 0.97 of the speed of the whole batch, with 128 at 0.8. A large vocabulary gets fewer rows, for the sake of memory.
int64_t piece_rows(int64_t rows, int64_t vocabulary, DType dtype) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const int64_t fitting = kBytes / std::max<int64_t>(1, vocabulary * static_cast<int64_t>(size_of(dtype)));
  return std::min(rows, std::clamp<int64_t>(fitting / 64 * 64, 256, 512));
}

struct LinearInputs {
  Tensor x, weight, bias;
};

// d_x, d_weight, d_bias; undefined where none is needed. Every element is written by the pieces, the first of which
// sets d_weight and d_bias.
Gradients make_gradients(const LinearInputs& in, bool recording) {
  const auto made = [&](const Tensor& input) {
    if (!recording || !input.defined() || !requires_gradient(input)) return Tensor{};
    return in.x.size(0) == 0 ? Tensor::zeros_like(input) : Tensor::empty_like(input);
  };
  return {made(in.x), made(in.weight), made(in.bias)};
}

// The inputs and the gradient of the logits as the products take them, and the logits of a piece.
struct Pieces {
  Tensor x, weight, bias;
  Tensor logits, d_logits;  // [rows of a piece, vocabulary]; of one type they are one
};

Pieces make_pieces(const LinearInputs& in, int64_t rows) {
  const auto& [x, weight, bias] = in;
  const Shape shape{rows, weight.size(0)};
  const Tensor logits = Tensor::empty(shape, {x.dtype(), x.device()});
  if (!bfloat16_products() || x.dtype() != DType::f32) return {x, weight, bias, logits, logits};
  return {to_bfloat16(x), stacked_in_bfloat16({&weight, 1}), bias, logits, Tensor::empty(shape, {DType::bf16})};
}

// The bias's part of a piece, of either type.
template <class T, class In>
void add_bias_gradient(const Tensor& d_logits, int64_t rows, T* d_bias, bool accumulate) {
  const int64_t columns = d_logits.size(1);
  if constexpr (std::is_same_v<T, In>) {
    dispatch(d_logits.device(),
             [&](auto device) { column_sums(device, d_logits.data<T>(), rows, columns, d_bias, accumulate); });
  } else {
    const Tensor part = Tensor::empty({columns}, {dtype_of<T>, d_logits.device()});
    dispatch(d_logits.device(), [&](auto device) {
      linear_gradient(device, LinearGradient<T, In, In>{.rows = rows,
                                                        .columns = columns,
                                                        .dy = d_logits.data<In>(),
                                                        .saved = nullptr,
                                                        .activation = Activation::none,
                                                        .scale = 1,
                                                        .dz = nullptr,
                                                        .d_bias = part.template data<T>()});
      column_sums(device, part.template data<T>(), 1, columns, d_bias, accumulate);
    });
  }
}

// Rows [begin, begin + rows) of x: their logits and results, and when gradients are defined their part of those. In is
// the type of the products' inputs.
template <class T, class In>
void run_piece(const Pieces& in, const CrossEntropyRows<T>& piece, int64_t begin, double scale,
               CrossEntropyRow* results, const Gradients& gradients) {
  const int64_t vocabulary = in.weight.size(0);
  const int64_t columns = in.x.size(1);
  const T* none = nullptr;
  const In* x = in.x.data<In>() + begin * columns;
  const In* weight = in.weight.data<In>();
  In* buffer = in.d_logits.data<In>();
  const Tensor& d_x = gradients[0];
  const Tensor& d_weight = gradients[1];
  const Tensor& d_bias = gradients[2];
  dispatch(in.x.device(), [&](auto device) {
    matmul(device, x, weight, in.bias.defined() ? in.bias.data<T>() : none, in.logits.data<T>(),
           {.m = piece.rows, .n = vocabulary, .k = columns, .transpose_b = true});
    if (!d_x.defined() && !d_weight.defined() && !d_bias.defined())
      return cross_entropy_forward(device, piece, results);
    cross_entropy_loss(device, CrossEntropyLoss<T, In>{.logits = in.logits.data<T>(),
                                                       .labels = piece.labels,
                                                       .rows = piece.rows,
                                                       .columns = vocabulary,
                                                       .ignore_index = piece.ignore_index,
                                                       .label_smoothing = piece.label_smoothing,
                                                       .scale = scale,
                                                       .results = results,
                                                       .d_logits = buffer});
    if (d_x.defined())
      matmul(device, buffer, weight, none, d_x.template data<T>() + begin * columns,
             {.m = piece.rows, .n = columns, .k = vocabulary});
    if (d_weight.defined())
      matmul(device, buffer, x, none, d_weight.template data<T>(),
             {.m = vocabulary, .n = columns, .k = piece.rows, .transpose_a = true, .accumulate = begin > 0});
    if (d_bias.defined()) add_bias_gradient<T, In>(in.d_logits, piece.rows, d_bias.template data<T>(), begin > 0);
  });
}

void check_linear(const LinearInputs& in) {
  constexpr std::string_view op = "linear_cross_entropy";
  const auto& [x, weight, bias] = in;
  if (!x.defined() || !weight.defined() || x.rank() != 2 || weight.rank() != 2 || x.size(1) != weight.size(1) ||
      x.dtype() != weight.dtype())
    fail<ShapeError>("{}: input {} {} does not fit the weight {} {}", op, name_of(x.dtype()), x.shape().text(),
                     name_of(weight.dtype()), weight.shape().text());
  if (bias.defined() && (bias.rank() != 1 || bias.size(0) != weight.size(0) || bias.dtype() != weight.dtype()))
    fail<ShapeError>("{}: weight {} {} does not fit the bias {} {}", op, name_of(weight.dtype()), weight.shape().text(),
                     name_of(bias.dtype()), bias.shape().text());
}

void scale_in_place(const Tensor& x, double factor) {
  dispatch_floating("linear_cross_entropy", x.dtype(), [&]<class T>(T) {
    T* values = x.data<T>();
    parallel_for(x.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] *= static_cast<T>(factor);
    });
  });
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
  const ProfileScope scope("cross_entropy");
  if (!logits.defined() || logits.rank() != 2)
    fail<ShapeError>("cross_entropy: the logits need two dimensions, found {}", logits.shape().text());
  const int64_t count = check_labels("cross_entropy", labels, logits.size(0), logits.size(1), options);
  const double scale = scale_of(options, count);
  std::vector<CrossEntropyRow> rows(static_cast<size_t>(logits.size(0)));
  dispatch_floating("cross_entropy", logits.dtype(), [&]<class T>(T) {
    const auto in = rows_in<T>(logits, labels.data<int32_t>(), logits.size(0), options);
    dispatch(logits.device(), [&](auto device) { cross_entropy_forward(device, in, rows.data()); });
  });
  CrossEntropy result = collect(rows, count, scale, {logits.dtype(), logits.device()});
  if (!is_recording({logits})) return result;
  record(
      "cross_entropy", {logits}, result.loss,
      [logits = logits.detach(), labels = labels.detach(), options, scale, rows = std::move(rows)](const Tensor& dy) {
        Tensor d_logits = Tensor::empty_like(logits);
        dispatch_floating("cross_entropy", logits.dtype(), [&]<class T>(T) {
          const auto in = rows_in<T>(logits, labels.data<int32_t>(), logits.size(0), options);
          dispatch(logits.device(), [&](auto device) {
            cross_entropy_backward(device, in, rows.data(), scale * dy.item(), d_logits.data<T>());
          });
        });
        return Gradients{d_logits};
      });
  return result;
}

CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& labels,
                                  const CrossEntropyOptions& options) {
  const ProfileScope scope("linear_cross_entropy");
  const LinearInputs in{x, weight, bias};
  check_linear(in);
  const int64_t n = x.size(0);
  const int64_t count = check_labels("linear_cross_entropy", labels, n, weight.size(0), options);
  const double scale = scale_of(options, count);
  const Gradients gradients = make_gradients(in, is_recording({x, weight, bias}));

  std::vector<CrossEntropyRow> rows(static_cast<size_t>(n));
  const int64_t step = piece_rows(n, weight.size(0), x.dtype());
  const Pieces pieces = make_pieces(in, step);
  dispatch_floating("linear_cross_entropy", x.dtype(), [&]<class T>(T) {
    for (int64_t begin = 0; begin < n; begin += step) {
      const auto piece = rows_in<T>(pieces.logits, labels.data<int32_t>() + begin, std::min(step, n - begin), options);
      if (pieces.x.dtype() == DType::bf16) {
        if constexpr (std::is_same_v<T, float>)
          run_piece<T, bfloat16>(pieces, piece, begin, scale, rows.data() + begin, gradients);
      } else {
        run_piece<T, T>(pieces, piece, begin, scale, rows.data() + begin, gradients);
      }
    }
  });
  CrossEntropy result = collect(rows, count, scale, {x.dtype(), x.device()});
  record("linear_cross_entropy", {x, weight, bias}, result.loss, [gradients](const Tensor& dy) {
    const double factor = dy.item();
    for (const Tensor& gradient : gradients) {
      if (factor != 1 && gradient.defined()) scale_in_place(gradient, factor);
    }
    return gradients;
  });
  return result;
}

}  // namespace attune
