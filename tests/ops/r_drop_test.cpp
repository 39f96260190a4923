// Cross entropy of pairs of predictions: CrossEntropyOptions::r_drop.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

using ::testing::ThrowsMessage;

// Labels of n pairs, some of them ignored.
Indices pair_labels(int64_t n, int32_t classes) {
  const Indices half = uniform_ids(n, classes);
  std::vector<int32_t> labels(half.values().begin(), half.values().end());
  labels[1] = -1;
  labels.resize(2 * labels.size());
  std::copy_n(labels.begin(), n, labels.begin() + n);
  return labels;
}

// log softmax of row r.
std::vector<double> log_of_pair_row(const Tensor& logits, int64_t r) {
  const auto all = logits.values<double>();
  const auto row = all.subspan(static_cast<size_t>(r * logits.size(1)), static_cast<size_t>(logits.size(1)));
  double sum = 0;
  for (const double x : row) sum += std::exp(x);
  std::vector<double> result;
  for (const double x : row) result.push_back(x - std::log(sum));
  return result;
}

// KL(p || q) + KL(q || p) of all pairs whose label counts.
double pair_divergence(const Tensor& logits, const Indices& labels) {
  double sum = 0;
  const int64_t half = logits.size(0) / 2;
  for (int64_t r = 0; r < half; ++r) {
    if (labels[r] < 0) continue;
    const std::vector<double> p = log_of_pair_row(logits, r), q = log_of_pair_row(logits, r + half);
    for (size_t c = 0; c < p.size(); ++c) sum += (std::exp(p[c]) - std::exp(q[c])) * (p[c] - q[c]);
  }
  return sum;
}

TEST(RDrop, EqualsTheFormulaOnEveryTarget) {
  for_each_target([](const char* target) {
    for (const int64_t classes : {2, 17, 1000}) {
      const Tensor x = normal({40, classes}, {.seed = 1, .deviation = 2});
      const Indices labels = pair_labels(20, static_cast<int32_t>(classes));
      const CrossEntropy plain = cross_entropy(x, labels, {.label_smoothing = 0.1});
      const double expected = plain.loss.item() + 5.0 / 2 * pair_divergence(x, labels) / 38;
      const CrossEntropyOptions options{.label_smoothing = 0.1, .r_drop = 5};
      const CrossEntropy found = cross_entropy(x, labels, options);
      EXPECT_NEAR(found.loss.item(), expected, 1e-12 * expected) << target << " " << classes;
      EXPECT_NEAR(found.sum_divergence.item(), pair_divergence(x, labels), 1e-12 * found.sum_divergence.item())
          << target;
      EXPECT_EQ(found.sum_negative_log_likelihood.item(), plain.sum_negative_log_likelihood.item()) << target;
      EXPECT_EQ(found.labels, 38);
      EXPECT_NEAR(cross_entropy(x.to(DType::f32), labels, options).loss.item(), expected, 1e-5 * expected) << target;
    }
  });
}

// What all logits of a row have in common changes nothing; 2^17 + x is exact for x that is a multiple of 1 / 64.
TEST(RDrop, LargeLogitsStayPreciseOnEveryDevice) {
  const Indices labels = pair_labels(20, 50);
  const Tensor x = normal({40, 50}, {.seed = 1, .deviation = 2}), shifted = Tensor::zeros({40, 50});
  for (int64_t i = 0; i < x.numel(); ++i) {
    double& value = x.data<double>()[i];
    value = std::round(value * 64) / 64;
    shifted.data<float>()[i] = static_cast<float>(value + 131072);
  }
  const auto gradient_of = [&](const Tensor& logits, const Device& device) {
    return outputs_and_gradients(
        [&](const std::vector<Tensor>& t) { return cross_entropy(t[0], labels, {.r_drop = 5}).loss; }, {logits},
        device);
  };
  const std::vector<Tensor> expected = gradient_of(x, Cpu{});
  std::vector<Device> devices = devices_under_test();
  devices.push_back(Cpu{});
  for (const Device& device : devices) {
    const std::vector<Tensor> found = gradient_of(shifted, device);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LT(relative_error(found[i], expected[i]), 2e-6) << device.text() << " " << i;
  }
}

TEST(RDrop, GradientMatchesFiniteDifferences) {
  const Indices labels = pair_labels(3, 19);
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions options{.label_smoothing = smoothing, .scale = 0.7, .r_drop = 3};
    EXPECT_LT(
        gradient_error([&](auto& x) { return cross_entropy(x, labels, options).loss; }, normal({6, 19}, {.seed = 1})),
        1e-7);
    EXPECT_LT(gradient_error(
                  [&](auto& t) { return linear_cross_entropy(t[0], t[1], t[2], labels, options).loss; },
                  std::vector{normal({6, 5}, {.seed = 1}), normal({19, 5}, {.seed = 2}), normal({19}, {.seed = 3})}),
              1e-7);
  }
}

struct PairRun {
  CrossEntropy value;
  std::vector<Tensor> gradients;
};

template <class F>
PairRun run_pairs(F&& f, std::vector<Tensor> inputs) {
  for (Tensor& x : inputs) require_gradient(x);
  PairRun result{f(inputs), {}};
  backward(result.value.loss);
  for (const Tensor& x : inputs) result.gradients.push_back(gradient(x));
  return result;
}

// 1300 rows are three pieces, the last of them smaller.
TEST(RDrop, PiecesEqualTheWhole) {
  const Indices labels = pair_labels(650, 300);
  const CrossEntropyOptions options{.label_smoothing = 0.1, .r_drop = 5};
  const std::vector<Tensor> inputs = {normal({1300, 24}, {.dtype = DType::f32, .seed = 1}),
                                      normal({300, 24}, {.dtype = DType::f32, .seed = 2, .deviation = 0.3}),
                                      normal({300}, {.dtype = DType::f32, .seed = 3})};
  const PairRun pieces =
      run_pairs([&](auto& t) { return linear_cross_entropy(t[0], t[1], t[2], labels, options); }, inputs);
  const PairRun whole =
      run_pairs([&](auto& t) { return cross_entropy(linear(t[0], t[1], t[2]), labels, options); }, inputs);
  EXPECT_NEAR(pieces.value.loss.item(), whole.value.loss.item(), 1e-5 * whole.value.loss.item());
  EXPECT_NEAR(pieces.value.sum_divergence.item(), whole.value.sum_divergence.item(),
              1e-5 * whole.value.sum_divergence.item());
  EXPECT_EQ(pieces.value.correct.item(), whole.value.correct.item());
  for (size_t i = 0; i < 3; ++i) EXPECT_LT(relative_error(pieces.gradients[i], whole.gradients[i]), 1e-5) << i;
}

TEST(RDrop, TakesBfloat16Products) {
  const Indices labels = pair_labels(30, 50);
  const CrossEntropyOptions options{.r_drop = 5};
  const std::vector<Tensor> inputs = {normal({60, 24}, {.dtype = DType::f32, .seed = 1}),
                                      normal({50, 24}, {.dtype = DType::f32, .seed = 2, .deviation = 0.3})};
  const auto f = [&](auto& t) { return linear_cross_entropy(t[0], t[1], {}, labels, options); };
  const PairRun exact = run_pairs(f, inputs);
  const ProductPrecisionScope narrow(ProductPrecision::bfloat16);
  const PairRun rounded = run_pairs(f, inputs);
  EXPECT_NEAR(rounded.value.loss.item(), exact.value.loss.item(), 0.02 * exact.value.loss.item());
  EXPECT_LT(relative_error(rounded.gradients[0], exact.gradients[0]), 0.05);
  EXPECT_LT(relative_error(rounded.gradients[1], exact.gradients[1]), 0.05);
}

TEST(RDrop, TwoEqualPredictionsAreOne) {
  const Tensor half = normal({4, 30}, {.seed = 1});
  const Tensor x = Tensor::empty({8, 30}, {.dtype = DType::f64});
  x.rows(0, 4).copy_from(half);
  x.rows(4, 8).copy_from(half);
  const Indices labels{3, 1, 4, 1, 3, 1, 4, 1};
  const auto with = [&](double r_drop) {
    return run_pairs([&](auto& t) { return cross_entropy(t[0], labels, {.r_drop = r_drop}); }, {x});
  };
  const PairRun found = with(5), plain = with(0);
  EXPECT_NEAR(found.value.loss.item(), plain.value.loss.item(), 1e-12);
  EXPECT_LT(relative_error(found.gradients[0], plain.gradients[0]), 1e-12);
}

TEST(RDrop, ClassesWithoutProbabilityCountNothing) {
  Tensor x = normal({2, 20}, {.dtype = DType::f32});
  x.data<float>()[4] = x.data<float>()[24] = -INFINITY;
  const PairRun found = run_pairs([&](auto& t) { return cross_entropy(t[0], Indices{3, 3}, {.r_drop = 1}); }, {x});
  EXPECT_TRUE(std::isfinite(found.value.loss.item()));
  EXPECT_EQ(first_not_finite(found.gradients[0]), -1);
}

TEST(RDrop, ThreadsDoNotChangeIt) {
  const Indices labels = pair_labels(300, 1000);
  const auto [one, two] = with_one_and_two_threads([&] {
    return run_pairs([&](auto& t) { return cross_entropy(t[0], labels, {.r_drop = 2}); },
                     {normal({600, 1000}, {.dtype = DType::f32, .seed = 1})});
  });
  EXPECT_EQ(one.value.loss.item(), two.value.loss.item());
  EXPECT_TRUE(same_bits(one.gradients[0], two.gradients[0]));
}

TEST(RDrop, IsTheSameOnEveryDevice) {
  const Indices labels = pair_labels(35, 45);
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-12;
    const CrossEntropyOptions options{.label_smoothing = 0.1, .scale = 2.5, .r_drop = 3};
    EXPECT_LT(device_error([&](auto& t) { return cross_entropy(t[0], labels, options).loss; },
                           {normal({70, 45}, {.dtype = dtype, .seed = 1, .deviation = 2})}),
              tolerance);
    EXPECT_LT(device_error([&](auto& t) { return linear_cross_entropy(t[0], t[1], t[2], labels, options).loss; },
                           {normal({70, 12}, {.dtype = dtype, .seed = 1}),
                            normal({45, 12}, {.dtype = dtype, .seed = 2}), normal({45}, {.dtype = dtype, .seed = 3})}),
              tolerance);
  }
}

TEST(RDrop, NamesWhatIsNoPair) {
  const CrossEntropyOptions options{.r_drop = 1};
  EXPECT_THAT(
      [&] {
        cross_entropy(normal({3, 4}), Indices{1, 1, 1}, options);
      },
      ThrowsMessage<ShapeError>("cross_entropy: 3 rows cannot be paired; r_drop needs an even number"));
  EXPECT_THAT(
      [&] {
        cross_entropy(normal({4, 4}), Indices{1, 2, 1, 3}, options);
      },
      ThrowsMessage<DataError>("cross_entropy: rows 1 and 3 are a pair for r_drop, but have the labels 2 and 3"));
  EXPECT_THROW(cross_entropy(normal({2, 4}), Indices{1, 1}, {.r_drop = -1}), ConfigError);
}

}  // namespace
}  // namespace attune
