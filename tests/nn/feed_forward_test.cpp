#include "attune/nn/feed_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "attune/autograd/graph.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

bool gated(FeedForwardActivation activation) {
  using enum FeedForwardActivation;
  return activation == swiglu || activation == geglu || activation == geglu_tanh || activation == reglu;
}

double act(FeedForwardActivation activation, double x) {
  using enum FeedForwardActivation;
  switch (activation) {
    case relu:
    case reglu:
      return std::max(0.0, x);
    case gelu:
    case geglu:
      return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
    case gelu_tanh:
    case geglu_tanh:
      return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    case gelu_sigmoid:
      return x / (1 + std::exp(-1.702 * x));
    case silu:
    case swiglu:
      return x / (1 + std::exp(-x));
    case tanh:
      return std::tanh(x);
  }
  return 0;
}

// The name of each parameter and random numbers for it.
std::map<std::string, Tensor> randomise(FeedForward& module, DType dtype) {
  std::map<std::string, Tensor> values;
  uint64_t seed = 10;
  for (const NamedParameter& p : named_parameters(module)) {
    values[p.name] = normal(p.tensor->shape(), {.seed = ++seed, .deviation = 0.5});
    *p.tensor = values[p.name].to(dtype);
  }
  return values;
}

// Output o of W x + b.
double product(const std::map<std::string, Tensor>& values, const std::string& linear, int64_t o,
               const std::vector<double>& x) {
  const Tensor& weight = values.at(linear + ".weight");
  const auto bias = values.find(linear + ".bias");
  double sum = bias == values.end() ? 0 : bias->second.data<double>()[o];
  for (size_t i = 0; i < x.size(); ++i) sum += weight.rows(o, o + 1).values<double>()[i] * x[i];
  return sum;
}

// The formula, one number at a time.
Tensor plain_feed_forward(const FeedForwardConfig& c, const std::map<std::string, Tensor>& values, const Tensor& x) {
  const Tensor y = Tensor::empty_like(x);
  for (int64_t row = 0; row < x.size(0); ++row) {
    const auto in = x.rows(row, row + 1).values<double>();
    const std::vector<double> token(in.begin(), in.end());
    std::vector<double> hidden;
    for (int64_t j = 0; j < c.d_ff; ++j) {
      hidden.push_back(act(c.activation, product(values, "linear_1", j, token)));
      if (gated(c.activation)) hidden.back() *= product(values, "linear_1", c.d_ff + j, token);
    }
    for (int64_t o = 0; o < c.d_model; ++o)
      y.rows(row, row + 1).data<double>()[o] = product(values, "linear_2", o, hidden);
  }
  return y;
}

TEST(FeedForward, EqualsTheFormula) {
  for (const auto& [activation, name] : EnumNames<FeedForwardActivation>::values) {
    for (const bool bias : {true, false}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const FeedForwardConfig config{.d_model = 12, .d_ff = 21, .activation = activation, .bias = bias};
        FeedForward module(config);
        const auto values = randomise(module, dtype);
        const Tensor x = normal({7, 12}, {.seed = 1});
        const Tensor expected = plain_feed_forward(config, values, x);
        const double bound = dtype == DType::f32 ? 2e-6 : 1e-13;
        EXPECT_LT(relative_error(module(x.to(dtype)), expected), bound) << static_cast<int>(activation);
        require_gradients(module);  // a recorded step takes another way
        EXPECT_LT(relative_error(module(x.to(dtype)), expected), bound) << static_cast<int>(activation);
      }
    }
  }
}

TEST(FeedForward, GradientMatchesFiniteDifferences) {
  for (const auto& [activation, name] : EnumNames<FeedForwardActivation>::values) {
    FeedForward module({.d_model = 4, .d_ff = 5, .activation = activation});
    randomise(module, DType::f64);
    const std::vector<NamedParameter> parameters = named_parameters(module);
    std::vector<Tensor> inputs{normal({3, 4}, {.seed = 1})};
    for (const NamedParameter& p : parameters) inputs.push_back(p.tensor->clone());
    const auto f = [&](const std::vector<Tensor>& t) {
      for (size_t i = 0; i < parameters.size(); ++i) *parameters[i].tensor = t[i + 1];
      return module(t[0]);
    };
    EXPECT_LT(gradient_error(f, inputs), 1e-7) << static_cast<int>(activation);
  }
}

TEST(FeedForward, ParametersAreNamedAndShaped) {
  for (const auto& [activation, name] : EnumNames<FeedForwardActivation>::values) {
    for (const bool bias : {true, false}) {
      FeedForward module({.d_model = 6, .d_ff = 8, .activation = activation, .bias = bias});
      std::map<std::string, Shape> found;
      for (const NamedParameter& p : named_parameters(module)) found.emplace(p.name, p.tensor->shape());
      const int64_t inner = gated(activation) ? 16 : 8;
      std::map<std::string, Shape> expected{{"linear_1.weight", {inner, 6}}, {"linear_2.weight", {6, 8}}};
      if (bias) expected.merge(std::map<std::string, Shape>{{"linear_1.bias", {inner}}, {"linear_2.bias", {6}}});
      EXPECT_EQ(found, expected) << static_cast<int>(activation);
    }
  }
}

// With every product the identity: what is dropped is the activation's output, and the rest is scaled.
TEST(FeedForward, DropoutComesAfterTheActivation) {
  for (const FeedForwardActivation activation : {FeedForwardActivation::relu, FeedForwardActivation::swiglu}) {
    constexpr int64_t d = 64;
    FeedForward module({.d_model = d, .d_ff = d, .activation = activation, .dropout = 0.5});
    for (const NamedParameter& p : named_parameters(module))
      for (int64_t i = 0; p.name.ends_with("weight") && i < p.tensor->size(0); ++i)
        p.tensor->data<float>()[i * d + i % d] = 1;
    const Tensor x = Tensor::full({1, d}, 2.0);
    const float whole = module(x).values<float>()[0];
    const DropoutScope scope({.seed = 3, .step = 4});
    int64_t dropped = 0;
    for (const float y : module(x).values<float>()) {
      if (y == 0) ++dropped;
      EXPECT_TRUE(y == 0 || y == 2 * whole) << y;
    }
    EXPECT_TRUE(dropped > 0 && dropped < d) << dropped;
  }
}

}  // namespace
}  // namespace attune
