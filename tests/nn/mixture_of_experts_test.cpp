#include "attune/nn/mixture_of_experts.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "attune/autograd/graph.h"
#include "attune/nn/expert_balance.h"
#include "attune/nn/make_panels.h"
#include "attune/ops/activation.h"
#include "attune/ops/gated_activation.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/routing.h"
#include "attune/ops/sigmoid.h"
#include "attune/ops/softmax.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

MixtureOfExpertsConfig small_experts(FeedForwardActivation activation = FeedForwardActivation::swiglu) {
  return {.expert = {.d_model = 8, .d_ff = 6, .activation = activation, .bias = true},
          .experts = 6,
          .shared_experts = 2,
          .scores = ExpertScores::sigmoid,
          .routing = {.experts_per_token = 2,
                      .groups = 3,
                      .top_groups = 2,
                      .group_score = GroupScore::sum_of_two,
                      .scale = 1.5},
          .choice_bias = true};
}

std::unique_ptr<MixtureOfExperts> random_module(const MixtureOfExpertsConfig& config, DType type) {
  auto module = std::make_unique<MixtureOfExperts>(config);
  uint64_t seed = 10;
  for (const NamedParameter& p : named_parameters(*module))
    p.tensor->copy_from(normal(p.tensor->shape(), {.dtype = DType::f32, .seed = seed++, .deviation = 0.5}));
  convert_parameters(*module, type);
  return module;
}

// The formula, one token and one expert after the other.
class Reference {
 public:
  Reference(MixtureOfExperts& module, const MixtureOfExpertsConfig& config) : config_(config) {
    for (const NamedParameter& p : named_parameters(module)) parameters_[p.name] = p.tensor->detach();
  }
  Tensor operator()(const Tensor& x) const {
    const NoGrad no_grad;
    const Tensor logits = linear(x, parameters_.at("router.weight"));
    const Tensor scores = config_.scores == ExpertScores::softmax ? softmax(logits) : sigmoid(logits);
    const auto bias = parameters_.find("router.choice_bias");
    const Routing routing = route(scores, bias == parameters_.end() ? Tensor{} : bias->second, config_.routing);
    const std::vector<int32_t> chosen = host_values<int32_t>(routing.chosen);
    const std::vector<double> weights = host_values<double>(routing.weights);
    const int64_t k = config_.routing.experts_per_token;
    Tensor y = config_.shared_experts > 0 ? network("shared_experts.", x) : Tensor::zeros_like(x);
    for (int64_t i = 0; i < static_cast<int64_t>(chosen.size()); ++i) {
      const int64_t t = i / k;
      const Tensor one = network("experts." + std::to_string(chosen[static_cast<size_t>(i)]) + ".", x.rows(t, t + 1));
      for (int64_t c = 0; c < x.size(1); ++c)
        y.values<double>()[static_cast<size_t>(t * x.size(1) + c)] +=
            weights[static_cast<size_t>(i)] * one.values<double>()[static_cast<size_t>(c)];
    }
    return y;
  }

 private:
  Tensor network(const std::string& name, const Tensor& x) const {
    const auto of = [&](const char* part) {
      const auto found = parameters_.find(name + part);
      return found == parameters_.end() ? Tensor{} : found->second;
    };
    Tensor h = linear(x, of("linear_1.weight"), of("linear_1.bias"));
    const auto gate = gate_of(config_.expert.activation);
    h = gate ? gated_activation(h, *gate) : activated(h, fused_activation(config_.expert.activation));
    return linear(h, of("linear_2.weight"), of("linear_2.bias"));
  }

  MixtureOfExpertsConfig config_;
  std::map<std::string, Tensor> parameters_;
};

TEST(MixtureOfExperts, IsTheWeightedSumOfTheChosenNetworks) {
  for (const auto& [activation, name] : EnumNames<FeedForwardActivation>::values)
    for (const bool plain : {true, false}) {
      MixtureOfExpertsConfig config = small_experts(activation);
      if (plain) {
        config.scores = ExpertScores::softmax;
        config.routing = {.experts_per_token = 3, .normalised = false};
        config.shared_experts = 0;
        config.choice_bias = config.expert.bias = false;
      }
      const auto module = random_module(config, DType::f64);
      EXPECT_EQ(parameter_count(*module), MixtureOfExperts::parameter_count(config));
      const Tensor x = normal({50, 8}, {.seed = 1});
      EXPECT_LT(relative_error((*module)(x), Reference(*module, config)(x)), 1e-10) << name;
    }
}

TEST(MixtureOfExperts, GradientsMatchFiniteDifferences) {
  for (const bool plain : {true, false}) {
    MixtureOfExpertsConfig config = small_experts(FeedForwardActivation::gelu);
    if (plain) {
      config.scores = ExpertScores::softmax;
      config.routing = {.experts_per_token = 2, .normalised = false};
    }
    const auto module = random_module(config, DType::f64);
    EXPECT_LT(gradient_error([&](auto& t) { return (*module)(t); }, normal({7, 8}, {.seed = 1})), 1e-6);
    const std::vector<NamedParameter> parameters = trained_parameters(*module);
    for (const NamedParameter& p : named_parameters(*module))
      if (p.name == "router.choice_bias") p.tensor->fill(0);  // so that every expert has a token
    const Tensor x = normal({40, 8}, {.seed = 2});
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor before = *parameters[i].tensor;
      const auto f = [&](const Tensor& t) {
        *parameters[i].tensor = t;
        return (*module)(x);
      };
      EXPECT_LT(gradient_error(f, before.clone()), 1e-6) << parameters[i].name;
      *parameters[i].tensor = before;
    }
  }
}

TEST(MixtureOfExperts, IsTheSameOnEveryDevice) {
  const MixtureOfExpertsConfig config = small_experts();
  const auto f = [&](const std::vector<Tensor>& t) {
    const auto module = random_module(config, DType::f32);
    move_parameters(*module, t[0].device());
    return (*module)(t[0]);
  };
  EXPECT_LT(device_error(f, {normal({90, 8}, {.dtype = DType::f32, .seed = 1})}), 2e-5);
}

TEST(MixtureOfExperts, ATokensResultDoesNotDependOnTheOthers) {
  MixtureOfExpertsConfig config = small_experts();
  config.expert.d_model = 64;
  config.expert.d_ff = 48;
  const NoGrad no_grad;
  for (const std::optional<WeightFormat> format :
       {std::optional<WeightFormat>{}, {WeightFormat::float32}, {WeightFormat::bfloat16}, {WeightFormat::int8}}) {
    const auto module = random_module(config, DType::f32);
    if (format) make_panels(*module, *format);
    const Tensor x = normal({130, 64}, {.dtype = DType::f32, .seed = 1});
    const Tensor together = (*module)(x);
    for (int64_t t = 0; t < 130; t += 13)
      EXPECT_TRUE(same_bits((*module)(x.rows(t, t + 1)), together.rows(t, t + 1))) << t;
  }
}

TEST(MixtureOfExperts, PanelsOfEightBitsAreNearToFloat32) {
  MixtureOfExpertsConfig config = small_experts();
  config.expert.d_model = 64;
  config.expert.d_ff = 48;
  const NoGrad no_grad;
  const auto module = random_module(config, DType::f32);
  const Tensor x = normal({40, 64}, {.dtype = DType::f32, .seed = 1});
  const Tensor expected = (*module)(x);
  make_panels(*module, WeightFormat::int8);
  keep_panels_alone(*module);
  EXPECT_LT(relative_error((*module)(x), expected), 3e-2);
}

// Makes the last two of six experts no numbers: the tensors, and the scales of panels.
class Poison final : public Visitor {
 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (!path.starts_with("experts.4") && !path.starts_with("experts.5")) return;
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    parameter.tensor.fill(kNaN);
    if (parameter.panels && is_quantised(parameter.panels->format())) parameter.panels->scales().fill(kNaN);
  }
};

// What is read of an expert that nobody chose would be seen.
TEST(MixtureOfExperts, ExpertsThatNobodyChoseAreNotRead) {
  const NoGrad no_grad;
  const Tensor x = normal({30, 8}, {.dtype = DType::f32, .seed = 1});
  for (const std::optional<WeightFormat> format : {std::optional<WeightFormat>{},
                                                   {WeightFormat::float32},
                                                   {WeightFormat::bfloat16},
                                                   {WeightFormat::int8},
                                                   {WeightFormat::int4}})
    for (const bool chosen : {false, true}) {
      SCOPED_TRACE(format ? enum_name(*format) : "no panels");
      const auto module = random_module(small_experts(), DType::f32);
      for (const NamedParameter& p : named_parameters(*module))
        if (p.name == "router.choice_bias")
          p.tensor->assign(std::span<const float>(chosen ? std::vector<float>{-9, -9, 0, 0, 9, 9}
                                                         : std::vector<float>{9, 9, 0, 0, -9, -9}));
      Poison poison;
      if (!format || !is_quantised(*format)) module->visit(poison);  // what is no number cannot be quantised
      if (format) make_panels(*module, *format);
      if (format && is_quantised(*format)) module->visit(poison);
      const int64_t found = first_not_finite((*module)(x));
      if (chosen)
        EXPECT_GE(found, 0);
      else
        EXPECT_LT(found, 0);
    }
}

TEST(MixtureOfExperts, NoTokensGiveNoRows) {
  const auto module = random_module(small_experts(), DType::f32);
  EXPECT_EQ((*module)(Tensor::empty({0, 8})).shape(), Shape({0, 8}));
}

TEST(MixtureOfExperts, InBfloat16ItIsNearToFloat32) {
  MixtureOfExpertsConfig config = small_experts(FeedForwardActivation::gelu);
  config.expert.d_model = 32;
  config.expert.d_ff = 32;
  const auto f = [&](const std::vector<Tensor>& t) { return (*random_module(config, DType::f32))(for_products(t[0])); };
  const std::vector<Tensor> x = {to_float32(to_bfloat16(normal({60, 32}, {.dtype = DType::f32, .seed = 1})))};
  const auto expected = outputs_and_gradients(f, x, Cpu{});
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const auto found = outputs_and_gradients(f, x, Cpu{});
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LT(relative_error(found[i], expected[i]), 3e-2) << i;
}

MixtureOfExpertsConfig balanced_config() {
  MixtureOfExpertsConfig config = small_experts();
  config.routing = {.experts_per_token = 2};
  config.bias_rate = 0.1;
  return config;
}

TEST(ExpertBalance, CountsRecordedPassesAlone) {
  const auto module = random_module(balanced_config(), DType::f32);
  require_gradients(*module);
  const Tensor x = normal({30, 8}, {.dtype = DType::f32, .seed = 1});
  struct Model final : Module {
    MixtureOfExperts& part;
    explicit Model(MixtureOfExperts& p) : part(p) {}
    void visit(Visitor& v) override { v("part", part); }
  } model(*module);
  ExpertBalance balance(model);
  {
    const NoGrad no_grad;
    (*module)(x);
  }
  EXPECT_EQ(balance.imbalance(balance.counts()), 0);
  (*module)(x);
  (*module)(x);
  int64_t all = 0;
  for (const int64_t count : balance.counts()) all += count;
  EXPECT_EQ(all, 2 * 2 * 30);
  EXPECT_GT(balance.imbalance(balance.counts()), 1);
}

TEST(ExpertBalance, MovesBiasesAgainstTheLoad) {
  const auto module = random_module(balanced_config(), DType::f32);
  std::vector<float> before, after;
  for (const NamedParameter& p : named_parameters(*module))
    if (p.name == "router.choice_bias") before = host_values<float>(*p.tensor);
  module->move_bias(std::vector<int64_t>{10, 0, 5, 5, 4, 6});
  for (const NamedParameter& p : named_parameters(*module))
    if (p.name == "router.choice_bias") after = host_values<float>(*p.tensor);
  const std::vector<float> moves = {-0.1f, 0.1f, 0, 0, 0.1f, -0.1f};
  for (size_t e = 0; e < moves.size(); ++e) EXPECT_NEAR(after[e] - before[e], moves[e], 1e-6) << e;
}

}  // namespace
}  // namespace attune
