// Each operation gives the same outputs and gradients on devices_under_test() as on the CPU. Operations with many
// variants compare them in their own tests.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attune/kernels/reduce.h"
#include "attune/kernels/top_candidates.h"
#include "attune/ops/activation.h"
#include "attune/ops/dropout.h"
#include "attune/ops/embedding.h"
#include "attune/ops/gated_activation.h"
#include "attune/ops/gather.h"
#include "attune/ops/layer_norm.h"
#include "attune/ops/mean_pool.h"
#include "attune/ops/residual.h"
#include "attune/ops/softmax.h"
#include "attune/tensor/dispatch.h"
#include "attune/tensor/host_view.h"
#include "attune/tensor/memory.h"
#include "tests/support/devices.h"

namespace attune {
namespace {

using Inputs = std::vector<Tensor>;

const DropoutMask kMask{.probability = 0.3, .seed = 5, .step = 2, .op = 1};

// f in both floating types.
template <class F>
void expect_same(F&& f, const std::vector<Shape>& shapes) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Inputs inputs;
    for (const Shape& shape : shapes) inputs.push_back(normal(shape, {.dtype = dtype, .seed = inputs.size() + 1}));
    EXPECT_LT(device_error(f, inputs), dtype == DType::f32 ? 3e-6 : 1e-12) << name_of(dtype);
  }
}

TEST(PlainDevice, Softmax) {
  expect_same([](const Inputs& x) { return softmax(x[0]); }, {{5, 37}});
  expect_same([](const Inputs& x) { return log_softmax(x[0]); }, {{5, 37}});
}

TEST(PlainDevice, Activations) {
  for (const auto function : {relu, gelu, gelu_tanh, gelu_sigmoid, silu, tanh})
    expect_same([&](const Inputs& x) { return function(x[0]); }, {{7, 19}});
  for (const Activation activation :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::gelu_sigmoid, Activation::silu})
    expect_same([&](const Inputs& x) { return gated_activation(x[0], activation); }, {{7, 22}});
}

TEST(PlainDevice, Norms) {
  for (const NormForm form : {NormForm::variance, NormForm::unbiased_std}) {
    const LayerNormOptions options{.form = form};
    expect_same([&](const Inputs& x) { return layer_norm(x[0], x[1], x[2], options); }, {{6, 33}, {33}, {33}});
    expect_same([&](const Inputs& x) { return layer_norm(x[0], x[1], x[2], options); }, {{6, 36}, {36}, {36}});
    for (const DropoutMask& mask : {kMask, DropoutMask{}})
      expect_same([&](const Inputs& x) { return residual_dropout_layer_norm(x[0], x[1], mask, x[2], x[3], options); },
                  {{6, 33}, {6, 33}, {33}, {33}});
  }
  expect_same([](const Inputs& x) { return layer_norm(x[0], x[1], {}, {.form = NormForm::rms}); }, {{6, 33}, {33}});
}

TEST(PlainDevice, DropoutAndResiduals) {
  expect_same([](const Inputs& x) { return dropout(x[0], kMask); }, {{9, 130}});
  expect_same([](const Inputs& x) { return residual_dropout(x[0], x[1], kMask); }, {{9, 130}, {9, 130}});
}

TEST(PlainDevice, Lookups) {
  const Indices ids = uniform_ids(40, 11, 3);
  expect_same([&](const Inputs& x) { return embedding(ids, x[0], 4.0); }, {{11, 13}});
  expect_same([&](const Inputs& x) { return add_rows(x[0], x[1].detach(), ids, kMask); }, {{40, 13}, {11, 13}});
  expect_same([](const Inputs& x) { return gather(x[0], {2, -1, 0, 2, 1}); }, {{3, 8}});
  const Sequences sequences = Sequences::from_lengths({3, 0, 2});
  expect_same([&](const Inputs& x) { return mean_pool(x[0], sequences); }, {{5, 6}});
}

void expect_tensors_work_on(const Device& device) {
  const Tensor x = normal({4, 5}, {.dtype = DType::f32, .seed = 1});
  const Tensor on_device = x.to(device);
  EXPECT_EQ(on_device.device(), device);
  EXPECT_EQ(host_values<float>(on_device), host_values<float>(x));
  EXPECT_EQ(host_values<double>(on_device.to(DType::f64)), host_values<double>(x.to(DType::f64)));
  EXPECT_EQ(host_values<float>(on_device.clone().rows(1, 3)), host_values<float>(x.rows(1, 3)));
  EXPECT_EQ(Tensor::full({}, 2.5, {.device = device}).item(), 2.5);
  EXPECT_EQ(host_values<int64_t>(Tensor::zeros({3}, {DType::i64, device})), (std::vector<int64_t>{0, 0, 0}));
  const Tensor sum = on_device.clone();
  add_in_place(sum, on_device);
  EXPECT_EQ(sum.rows(0, 1).reshape({5}).rows(0, 1).item(), 2 * x.rows(0, 1).reshape({5}).rows(0, 1).item());
  EXPECT_EQ(first_not_finite(on_device), -1);
  EXPECT_EQ(first_not_finite(Tensor::full({3}, INFINITY, {.dtype = DType::f32, .device = device})), 0);
  const Tensor threes = Tensor::full({4, 5}, 3, {.dtype = DType::f32, .device = device});
  dispatch(device, [&](auto d) { swap_values(d, sum, threes); });
  EXPECT_EQ(host_values<float>(sum), std::vector<float>(20, 3));
  EXPECT_EQ(threes.rows(0, 1).reshape({5}).rows(0, 1).item(), 2 * x.rows(0, 1).reshape({5}).rows(0, 1).item());
  EXPECT_THROW(on_device.host_bytes(), ShapeError);
  EXPECT_THROW(softmax(on_device).copy_from(x.rows(0, 2)), ShapeError);
  EXPECT_THROW(residual_dropout(x, on_device, {}), ShapeError);
  const Tensor squares = Tensor::full({1}, 0.5, {DType::f64, device});
  const std::vector<Tensor> parts = {on_device, on_device.rows(1, 1), on_device.rows(1, 3)};
  dispatch(device, [&](auto d) { add_squares(d, parts, squares); });
  const double expected = 0.5 + sum_of_squares(Cpu{}, x) + sum_of_squares(Cpu{}, x.rows(1, 3));
  EXPECT_NEAR(squares.item(), expected, 1e-14 * expected);
  const std::vector<Tensor> numbers = {Tensor::from({2}, std::vector<float>{1, -2}, device),
                                       Tensor::full({}, 2.5, {DType::f64, device}), Tensor::full({1, 1}, 3)};
  EXPECT_EQ(host_values<double>(joined_numbers(numbers, device)), (std::vector<double>{1, -2, 2.5, 3}));
}

TEST(PlainDevice, Tensors) {
  for (const Device& device : devices_under_test()) {
    SCOPED_TRACE(device.text());
    expect_tensors_work_on(device);
    EXPECT_NE(device.text(), Device().text());
  }
}

TEST(PlainDeviceDeathTest, TheHostCannotReadIt) {
  const Tensor x = normal({4, 5}, {.dtype = DType::f32}).to(Plain{});
  EXPECT_DEATH(static_cast<void>(*const_cast<volatile float*>(x.data<float>())), "");
}

// Rows of two tensors, with rules and penalties of their own.
TEST(PlainDevice, TopCandidates) {
  const Tensor logits = normal({3, 50}, {.dtype = DType::f32, .seed = 4});
  const Tensor others = normal({2, 20}, {.dtype = DType::f32, .seed = 5});
  const std::vector<CandidateRules> rules = {
      {.excluded = {7, 3}}, {.wanted = {49, 0}}, {.wanted = {5, 6}, .only_wanted = true}};
  const std::vector<int32_t> excluded = {1, 2}, seen = {0, 4, 19};
  const auto lists_on = [&](const Tensor& x, const Tensor& y) {
    CandidateLists lists;
    lists.reset(5, 6);
    std::vector<CandidateJob> jobs;
    for (size_t row = 0; row < 3; ++row)
      jobs.push_back({.row = {x, static_cast<int64_t>(row), 50},
                      .query = {.count = 4, .excluded = excluded, .rules = &rules[row]},
                      .room = lists.room(row)});
    for (size_t row = 3; row < 5; ++row)  // the second one without the share of what is left out
      jobs.push_back(
          {.row = {y, static_cast<int64_t>(row) - 3, 20},
           .query = {.count = 6, .excluded = excluded, .renormalize = row == 4, .penalized = seen, .penalty = 2},
           .room = lists.room(row)});
    dispatch(x.device(), [&](auto device) { top_candidates(device, jobs); });
    for (size_t row = 0; row < jobs.size(); ++row) {
      EXPECT_GE(jobs[row].found, 0);
      lists.set_count(row, static_cast<size_t>(jobs[row].found));
    }
    return lists;
  };
  const CandidateLists expected = lists_on(logits.clone(), others.clone());
  for (const Device& device : devices_under_test()) {
    const CandidateLists found = lists_on(logits.to(device), others.to(device));
    for (size_t row = 0; row < 5; ++row) {
      ASSERT_EQ(found[row].size(), expected[row].size());
      for (size_t i = 0; i < found[row].size(); ++i) {
        EXPECT_EQ(found[row][i].token, expected[row][i].token);
        EXPECT_NEAR(found[row][i].log_probability, expected[row][i].log_probability, 1e-5);
      }
    }
  }
}

// One of two rows is no distribution, and one has its logits changed by a penalty.
TEST(PlainDevice, TopCandidatesOfNoDistributionAndPenalizedTokens) {
  const std::vector<int32_t> tokens = {0, 3};
  for (const Device& device : devices_under_test()) {
    SCOPED_TRACE(device.text());
    const float none = std::numeric_limits<float>::quiet_NaN();
    const Tensor logits = Tensor::from({2, 4}, std::vector<float>{1, none, 1, 1, 3, 3, -3, -3}, device);
    std::vector<Candidate> room(2);
    std::vector<CandidateJob> jobs;
    jobs.push_back({.row = {logits, 0, 4}, .query = {}, .room = std::span(room).first(1)});
    jobs.push_back(
        {.row = {logits, 1, 4}, .query = {.penalized = tokens, .penalty = 2}, .room = std::span(room).last(1)});
    dispatch(device, [&](auto d) { top_candidates(d, jobs); });
    EXPECT_EQ(jobs[0].found, -1);
    ASSERT_EQ(jobs[1].found, 1);
    EXPECT_EQ(room[1].token, 1);
    const std::vector<float> after = host_values<float>(logits);
    EXPECT_EQ(std::vector<float>(after.begin() + 4, after.end()), (std::vector<float>{1.5, 3, -3, -6}));
  }
}

}  // namespace
}  // namespace attune
