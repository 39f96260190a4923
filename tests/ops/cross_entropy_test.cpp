#include "attune/ops/cross_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/kernels/cross_entropy.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/tensor/dispatch.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

// The formula, element by element in float64.
double plain_loss(const Tensor& logits, const Indices& labels, double smoothing, int32_t ignored) {
  const Tensor x = logits.to(DType::f64);
  const int64_t classes = x.size(1);
  double loss = 0;
  int64_t count = 0;
  for (int64_t row = 0; row < x.size(0); ++row) {
    const int32_t label = labels[row];
    if (label == ignored) continue;
    const double* v = x.data<double>() + row * classes;
    double sum = 0, all = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(v[c]);
    for (int64_t c = 0; c < classes; ++c) all += (std::log(sum) - v[c]) / static_cast<double>(classes);
    loss += (1 - smoothing) * (std::log(sum) - v[label]) + smoothing * all;
    ++count;
  }
  return loss / static_cast<double>(count);
}

// x weight^T + bias
Tensor plain_logits(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = Tensor::empty({x.size(0), weight.size(0)}, {.dtype = x.dtype()});
  matmul(Cpu{}, x, weight, bias, y, {.transpose_b = true});
  return y;
}

TEST(CrossEntropy, EqualsTheFormulaOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const int64_t classes : {2, 16, 17, 1000}) {
      const Tensor x = normal({40, classes}, {.seed = 1, .deviation = 3});
      const Indices labels = uniform_ids(40, static_cast<int32_t>(classes));
      for (const double smoothing : {0.0, 0.1}) {
        const CrossEntropyOptions options{.label_smoothing = smoothing, .ignore_index = 1};
        const double expected = plain_loss(x, labels, smoothing, 1);
        EXPECT_NEAR(cross_entropy(x, labels, options).loss.item(), expected, 1e-12 * expected) << target << classes;
        EXPECT_NEAR(cross_entropy(x.to(DType::f32), labels, options).loss.item(), expected, 1e-6 * expected) << target;
      }
    }
  });
}

TEST(CrossEntropy, GradientMatchesFiniteDifferences) {
  const Indices labels = Indices{3, 0, 18, -1, 7};
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    for (const double scale : {0.0, 2.5}) {
      const CrossEntropyOptions options{.label_smoothing = smoothing, .scale = scale};
      EXPECT_LT(
          gradient_error([&](auto& x) { return cross_entropy(x, labels, options).loss; }, normal({5, 19}, {.seed = 1})),
          1e-7);
    }
  }
}

TEST(CrossEntropy, LinearGradientMatchesFiniteDifferences) {
  const Indices labels = Indices{3, 0, 18, -1, 7};
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  EXPECT_LT(
      gradient_error([&](auto& t) { return linear_cross_entropy(t[0], t[1], t[2], labels, options).loss; },
                     std::vector{normal({5, 6}, {.seed = 1}), normal({19, 6}, {.seed = 2}), normal({19}, {.seed = 3})}),
      1e-7);
  EXPECT_LT(gradient_error([&](auto& t) { return linear_cross_entropy(t[0], t[1], {}, labels, options).loss; },
                           std::vector{normal({5, 6}, {.seed = 1}), normal({19, 6}, {.seed = 2})}),
            1e-7);
}

// Labels at some positions replaced by -1.
Indices with_ignored(const Indices& labels, const std::vector<size_t>& positions) {
  std::vector<int32_t> values(labels.values().begin(), labels.values().end());
  for (const size_t i : positions) values[i] = -1;
  return values;
}

struct Result {
  CrossEntropy value;
  Tensor dx, d_weight, d_bias;
};

Result run_linear(Tensor x, Tensor weight, Tensor bias, const Indices& labels, const CrossEntropyOptions& options) {
  for (Tensor* t : {&x, &weight, &bias}) require_gradient(*t);
  const CrossEntropy value = linear_cross_entropy(x, weight, bias, labels, options);
  backward(value.loss);
  return {value, gradient(x), gradient(weight), gradient(bias)};
}

// 1300 rows are three pieces, the last of them smaller.
TEST(CrossEntropy, PiecesEqualTheWhole) {
  const Tensor x = normal({1300, 24}, {.dtype = DType::f32, .seed = 1});
  const Tensor weight = normal({4000, 24}, {.dtype = DType::f32, .seed = 2, .deviation = 0.3});
  const Tensor bias = normal({4000}, {.dtype = DType::f32, .seed = 3});
  const Indices labels = with_ignored(uniform_ids(1300, 4000), {5, 1299});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const Result found = run_linear(x, weight, bias, labels, options);

  Tensor logits = plain_logits(x, weight, bias);
  require_gradient(logits);
  const CrossEntropy whole = cross_entropy(logits, labels, options);
  backward(whole.loss);
  const Tensor d_logits = gradient(logits);
  const Tensor dx = Tensor::empty_like(x), d_weight = Tensor::empty_like(weight), d_bias = Tensor::zeros_like(bias);
  matmul(Cpu{}, d_logits, weight, {}, dx, {});
  matmul(Cpu{}, d_logits, x, {}, d_weight, {.transpose_a = true});
  for (int64_t i = 0; i < d_logits.numel(); ++i) d_bias.data<float>()[i % 4000] += d_logits.data<float>()[i];

  EXPECT_NEAR(found.value.loss.item(), whole.loss.item(), 1e-6 * whole.loss.item());
  EXPECT_NEAR(found.value.sum_negative_log_likelihood.item(), whole.sum_negative_log_likelihood.item(),
              1e-6 * whole.sum_negative_log_likelihood.item());
  EXPECT_EQ(found.value.labels, 1298);
  EXPECT_EQ(found.value.correct.item(), whole.correct.item());
  EXPECT_LT(relative_error(found.dx, dx), 1e-5);
  EXPECT_LT(relative_error(found.d_weight, d_weight), 1e-5);
  EXPECT_LT(relative_error(found.d_bias, d_bias), 1e-5);
}

TEST(CrossEntropy, NeverHoldsAllLogits) {
  const Tensor x = normal({4096, 8}, {.dtype = DType::f32});
  const Tensor weight = normal({3000, 8}, {.dtype = DType::f32});
  const Indices labels = uniform_ids(4096, 3000);
  release_cached_memory();
  reset_peak_bytes();
  const int64_t before = allocator_statistics().bytes_in_use;
  run_linear(x, weight, Tensor::zeros({3000}), labels, {});
  EXPECT_LT(allocator_statistics().peak_bytes_in_use - before, 4096 * 3000 * 4 / 4);
}

TEST(CrossEntropy, ThreadsDoNotChangeIt) {
  const Tensor x = normal({600, 16}, {.dtype = DType::f32, .seed = 1});
  const Tensor weight = normal({1000, 16}, {.dtype = DType::f32, .seed = 2});
  const Tensor bias = normal({1000}, {.dtype = DType::f32, .seed = 3});
  const Indices labels = uniform_ids(600, 1000);
  const auto [one, two] = with_one_and_two_threads([&] {
    Tensor logits = plain_logits(x, weight, bias);  // a product of the whole is not at issue here
    require_gradient(logits);
    const CrossEntropy value = cross_entropy(logits, labels, {.label_smoothing = 0.1});
    backward(value.loss);
    return Result{value, gradient(logits), {}, {}};
  });
  EXPECT_EQ(one.value.loss.item(), two.value.loss.item());
  EXPECT_EQ(one.value.sum_negative_log_likelihood.item(), two.value.sum_negative_log_likelihood.item());
  EXPECT_TRUE(same_bits(one.dx, two.dx));
}

TEST(CrossEntropy, CountsHitsOnTheFirstLargestLogit) {
  const Tensor x = Tensor::zeros({4, 20});
  x.data<float>()[0 * 20 + 17] = 1;  // row 0: 17
  x.data<float>()[1 * 20 + 3] = 1;   // row 1: 3 and 9 tie, the first counts
  x.data<float>()[1 * 20 + 9] = 1;
  x.data<float>()[2 * 20 + 0] = 1;
  for_each_target([&](const char* target) {
    EXPECT_EQ(cross_entropy(x, Indices{17, 3, 0, 0}).correct.item(), 4) << target;  // row 3 is all ties
    EXPECT_EQ(cross_entropy(x, Indices{16, 9, 1, 5}).correct.item(), 0) << target;
    EXPECT_EQ(cross_entropy(x, Indices{17, -1, -1, 1}).correct.item(), 1) << target;
  });
}

TEST(CrossEntropy, NoLabelsAtAllIsZero) {
  Tensor x = normal({3, 4});
  require_gradient(x);
  const CrossEntropy value = cross_entropy(x, Indices{-1, -1, -1});
  EXPECT_EQ(value.loss.item(), 0);
  EXPECT_EQ(value.labels, 0);
  backward(value.loss);
  EXPECT_TRUE(same_bits(gradient(x), Tensor::zeros({3, 4}, {.dtype = DType::f64})));
  const Result empty = run_linear(normal({0, 4}), normal({5, 4}), normal({5}), Indices{}, {});
  EXPECT_EQ(empty.value.loss.item(), 0);
  EXPECT_TRUE(same_bits(empty.d_weight, Tensor::zeros({5, 4}, {.dtype = DType::f64})));
}

TEST(CrossEntropy, GradientOfARowSumsToZero) {
  rc::check([] {
    const auto classes = *rc::gen::inRange<int32_t>(2, 100);
    Tensor x = normal({1, classes}, {.dtype = DType::f32, .seed = *rc::gen::arbitrary<uint64_t>(), .deviation = 5});
    require_gradient(x);
    const Indices labels = Indices{*rc::gen::inRange(0, classes)};
    const CrossEntropy value = cross_entropy(x, labels, {.label_smoothing = *rc::gen::inRange(0, 11) / 10.0});
    backward(value.loss);
    double sum = 0;
    for (const float v : gradient(x).values<float>()) sum += v;
    RC_ASSERT(std::abs(sum) < 1e-5);
    RC_ASSERT(value.sum_negative_log_likelihood.item() >= -1e-6);
  });
}

TEST(CrossEntropy, MaskedClassesAndNaN) {
  Tensor x = normal({1, 20}, {.dtype = DType::f32});
  x.data<float>()[4] = -INFINITY;
  require_gradient(x);
  const CrossEntropy value = cross_entropy(x, Indices{3});
  backward(value.loss);
  EXPECT_EQ(first_not_finite(gradient(x)), -1);
  EXPECT_TRUE(std::isfinite(value.loss.item()));
  x.data<float>()[7] = NAN;
  EXPECT_TRUE(std::isnan(cross_entropy(x, Indices{3}).loss.item()));
}

void expect_same(const CrossEntropy& found, const CrossEntropy& expected, double tolerance) {
  EXPECT_NEAR(found.sum_negative_log_likelihood.item(), expected.sum_negative_log_likelihood.item(),
              tolerance * expected.sum_negative_log_likelihood.item());
  EXPECT_EQ(found.labels, expected.labels);
  EXPECT_EQ(found.correct.item(), expected.correct.item());
}

TEST(CrossEntropy, IsTheSameOnEveryDevice) {
  const Indices labels = with_ignored(uniform_ids(70, 45), {3, 69});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
    const Tensor logits = normal({70, 45}, {.dtype = dtype, .seed = 1, .deviation = 3});
    for (const double smoothing : {0.0, 0.1}) {
      for (const double scale : {0.0, 2.5}) {
        const CrossEntropyOptions options{.label_smoothing = smoothing, .scale = scale};
        EXPECT_LT(device_error([&](auto& t) { return cross_entropy(t[0], labels, options).loss; }, {logits}),
                  tolerance);
        for (const Device& device : devices_under_test())
          expect_same(cross_entropy(logits.to(device), labels, options), cross_entropy(logits, labels, options),
                      tolerance);
      }
    }
  }
}

struct RowResults {
  Tensor results, d_logits;
};

// Of `logits`, the first `classes` columns of them; with or without gradients.
RowResults run_rows(const Device& device, const Tensor& logits, const Tensor& labels, int64_t classes, double smoothing,
                    DType gradients) {
  const Tensor results = Tensor::zeros({logits.size(0), kCrossEntropyNumbers}, {DType::f64, device});
  const Tensor d_logits = Tensor::empty(logits.shape(), {gradients, device});
  const CrossEntropyInputs in{.logits = logits.to(device).clone(),
                              .labels = labels.to(device),
                              .label_smoothing = smoothing,
                              .classes = classes};
  dispatch(device, [&](auto d) { cross_entropy_loss(d, in, 2.5, results, d_logits); });
  return {results.to(Cpu{}), d_logits.to(Cpu{})};
}

// GPUs read and write four columns at once where the rows allow it. Classes end there, and within such four; each
// thread has one or several of them.
TEST(CrossEntropy, UnusedColumnsAreTheSameOnEveryDevice) {
  const Tensor labels = Tensor::from({5}, std::vector<int32_t>{3, 0, -1, 40, 7});
  for (const auto& [columns, classes] :
       {std::pair<int64_t, int64_t>{48, 44}, {48, 45}, {48, 47}, {47, 45}, {9000, 8999}}) {
    const Tensor logits = normal({5, columns}, {.dtype = DType::f32, .seed = 1, .deviation = 3});
    for (int64_t row = 0; row < 5; ++row)
      for (int64_t c = classes; c < columns; ++c) logits.data<float>()[row * columns + c] = NAN;
    for (const double smoothing : {0.1, 0.0}) {
      if (smoothing == 0) logits.data<float>()[9] = logits.data<float>()[columns + 6] = -INFINITY;
      for (const DType gradients : {DType::f32, DType::bf16}) {
        const RowResults expected = run_rows(Cpu{}, logits, labels, classes, smoothing, gradients);
        const double tolerance = gradients == DType::bf16 ? 1.0 / 256 : 1e-5;
        for (const Device& device : devices_under_test()) {
          const RowResults found = run_rows(device, logits, labels, classes, smoothing, gradients);
          EXPECT_LT(relative_error(found.results, expected.results), 1e-5) << columns << " " << classes;
          EXPECT_LT(relative_error(found.d_logits, expected.d_logits), tolerance) << columns << " " << classes;
        }
      }
    }
  }
}

TEST(CrossEntropy, BadLogitsStayVisibleOnEveryDevice) {
  const Tensor labels = Tensor::from({1}, std::vector<int32_t>{3});
  for (const int64_t place : {0, 1, 2, 3, 44}) {  // within four columns, and behind the last four of 45 classes
    for (const float bad : {NAN, INFINITY}) {
      const Tensor logits = normal({1, 48}, {.dtype = DType::f32, .seed = 1});
      logits.data<float>()[place] = bad;
      for (const Device& device : devices_under_test()) {
        const RowResults found = run_rows(device, logits, labels, 45, 0, DType::bf16);
        EXPECT_TRUE(std::isnan(found.results.data<double>()[0])) << device.text() << " " << place << " " << bad;
      }
    }
  }
}

// 1300 rows are three pieces.
TEST(CrossEntropy, LinearIsTheSameOnEveryDevice) {
  const Indices labels = with_ignored(uniform_ids(1300, 45), {3, 600, 1299});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
    const std::vector<Tensor> t{normal({1300, 12}, {.dtype = dtype, .seed = 1}),
                                normal({45, 12}, {.dtype = dtype, .seed = 2}),
                                normal({45}, {.dtype = dtype, .seed = 3})};
    const CrossEntropyOptions options{.label_smoothing = 0.1};
    const auto with_bias = [&](const std::vector<Tensor>& x) {
      return linear_cross_entropy(x[0], x[1], x[2], labels, options);
    };
    EXPECT_LT(device_error([&](auto& x) { return with_bias(x).loss; }, t), tolerance);
    EXPECT_LT(device_error([&](auto& x) { return linear_cross_entropy(x[0], x[1], {}, labels).loss; }, t), tolerance);
    for (const Device& device : devices_under_test()) {
      const CrossEntropy found = with_bias(copies_on(device, t));  // not recorded
      expect_same(found, with_bias(t), tolerance);
      EXPECT_LT(relative_error(found.loss, with_bias(t).loss), tolerance);
    }
  }
}

TEST(CrossEntropy, NamesWhatDoesNotFit) {
  const Tensor x = normal({2, 4});
  EXPECT_THAT(
      [&] {
        cross_entropy(x, Indices{1, 4});
      },
      testing::ThrowsMessage<DataError>("cross_entropy: label 4 at position 1 is outside the vocabulary of 4"));
  EXPECT_THAT([&] { cross_entropy(x, Indices{1}); },
              testing::ThrowsMessage<ShapeError>("cross_entropy: 2 rows but 1 labels"));
  EXPECT_THROW(cross_entropy(x, Indices{1, 1}, {.label_smoothing = 1.5}), ConfigError);
  EXPECT_THAT(
      [&] {
        linear_cross_entropy(x, normal({7, 3}), {}, Indices{1, 1});
      },
      testing::ThrowsMessage<ShapeError>(testing::AllOf(testing::HasSubstr("[2, 4]"), testing::HasSubstr("[7, 3]"))));
  EXPECT_THROW(linear_cross_entropy(x, normal({7, 4}), normal({6}), Indices{1, 1}), ShapeError);
  EXPECT_THROW(linear_cross_entropy(x, normal({7, 4}).to(Plain{}), {}, Indices{1, 1}), ShapeError);
}

}  // namespace
}  // namespace attune
