#include "attune/optim/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attune/autograd/graph.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

Tensor leaf(const Tensor& x) {
  Tensor parameter = x;
  require_gradient(parameter);
  return parameter;
}

// The figures below are PyTorch 2's:
//   p = Parameter(tensor([[0.5, -1.25, 2.0], [0.125, -0.75, 1.5]], dtype=float64)); b = Parameter(tensor([0.25, -0.5]))
//   optimizer = torch.optim.Adam([{'params': [p], 'weight_decay': decay}, {'params': [b], 'weight_decay': 0}],
//                                lr=0.01, betas=(0.9, 0.98), eps=1e-9)          # or torch.optim.AdamW
//   for t in range(1, 5):
//     i = torch.arange(6.).reshape(2, 3); p.grad = torch.sin(t + i) * (1 + i); b.grad = torch.cos(t + torch.arange(2.))
//     torch.nn.utils.clip_grad_norm_([p, b], clip)                              # where clipping is on
//     optimizer.step()
struct FourSteps {
  std::vector<double> matrix, vector, norms;
};

FourSteps four_steps(const OptimizerConfig& config) {
  Tensor p = leaf(Tensor::from({2, 3}, std::vector<double>{0.5, -1.25, 2.0, 0.125, -0.75, 1.5}));
  Tensor b = leaf(Tensor::from({2}, std::vector<double>{0.25, -0.5}));
  Adam adam({{"p", &p}, {"b", &b}}, config);
  FourSteps result;
  for (int t = 1; t <= 4; ++t) {
    const Tensor dp = Tensor::empty_like(p), db = Tensor::empty_like(b);
    for (int i = 0; i < 6; ++i) dp.data<double>()[i] = std::sin(t + i) * (1 + i);
    for (int i = 0; i < 2; ++i) db.data<double>()[i] = std::cos(t + i);
    set_gradient(p, dp);
    set_gradient(b, db);
    result.norms.push_back(adam.step(0.01));
  }
  result.matrix.assign(p.values<double>().begin(), p.values<double>().end());
  result.vector.assign(b.values<double>().begin(), b.values<double>().end());
  return result;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-14) << i;
}

TEST(Adam, EqualsPyTorch) {
  const FourSteps result = four_steps({.kind = OptimizerKind::adam});
  expect_near(result.matrix, {0.4686617053849829, -1.2650973053717345, 2.011552664757954, 0.15776892944961013,
                              -0.7319112760619811, 1.4913875171696367});
  expect_near(result.vector, {0.2504407527677766, -0.46464590035247944});
}

TEST(Adam, DecayOfMatricesIsPartOfTheGradient) {
  const FourSteps result = four_steps({.kind = OptimizerKind::adam, .weight_decay = 0.1});
  expect_near(result.matrix, {0.4679316468169838, -1.263039284792111, 2.009715445127277, 0.1577169050020385,
                              -0.7314744843238797, 1.4906207997699268});
  expect_near(result.vector, {0.2504407527677766, -0.46464590035247944});  // as without decay
}

TEST(Adam, DecayIsDecoupledInAdamW) {
  const FourSteps result = four_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.1});
  expect_near(result.matrix, {0.46672313102487517, -1.2600586669886404, 2.0035746288323755, 0.15721077439828152,
                              -0.7289648262782098, 1.4853820146119021});
  expect_near(result.vector, {0.2504407527677766, -0.46464590035247944});
}

TEST(Adam, ClipsTheGlobalNormAndReportsItUnclipped) {
  const FourSteps result = four_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.1, .clip_norm = 1});
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(result.norms[i],
                (std::vector{6.294658232827934, 6.278345525923025, 7.6988243050429475, 6.553808777291619})[i], 1e-12);
  for (size_t i = 0; i < 6; ++i)  // PyTorch divides by norm + 1e-6
    EXPECT_NEAR(result.matrix[i],
                (std::vector{0.4667695255189145, -1.2613568913548292, 2.0035305910171877, 0.15700175302866098,
                             -0.727710743535945, 1.4855132639797577})[i],
                1e-8);
  const FourSteps loose = four_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.1, .clip_norm = 10});
  EXPECT_EQ(loose.matrix, four_steps({.kind = OptimizerKind::adamw, .weight_decay = 0.1}).matrix);
}

// Kingma & Ba 2015, algorithm 1, and the moving average, one number at a time.
struct Reference {
  std::vector<double> p, m, v, average;
  void step(const Tensor& gradient, double rate, const OptimizerConfig& c, double moving_average, int t) {
    const double decay = std::min(moving_average, (1.0 + t) / (10.0 + t));
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = gradient.values<float>()[i];
      m[i] = c.beta_1 * m[i] + (1 - c.beta_1) * g;
      v[i] = c.beta_2 * v[i] + (1 - c.beta_2) * g * g;
      p[i] -= rate * (m[i] / (1 - std::pow(c.beta_1, t))) / (std::sqrt(v[i] / (1 - std::pow(c.beta_2, t))) + c.epsilon);
      average[i] = decay * average[i] + (1 - decay) * p[i];
    }
  }
};

TEST(Adam, EqualsThePlainLoopForManyElements) {
  const int64_t n = 70001;  // several pieces of the parallel loop, and a rest that fills no vector
  Tensor p = leaf(normal({n}, {.dtype = DType::f32, .seed = 3}));
  const auto start = p.values<float>();
  Reference reference{.p = {start.begin(), start.end()},
                      .m = std::vector<double>(n),
                      .v = std::vector<double>(n),
                      .average = {start.begin(), start.end()}};
  const OptimizerConfig config{.beta_2 = 0.999, .epsilon = 1e-8};
  Adam adam({{"p", &p}}, config, 0.5);
  for (int t = 1; t <= 20; ++t) {  // the average's decay goes from 2/11 to 1/2
    set_gradient(p, normal({n}, {.dtype = DType::f32, .seed = static_cast<uint64_t>(100 + t)}));
    reference.step(gradient(p), 1e-3, config, 0.5, t);
    adam.step(1e-3);
  }
  const AdamState& state = adam.states()[0];
  for (size_t i = 0; i < n; ++i) {
    ASSERT_NEAR(p.values<float>()[i], reference.p[i], 1e-5) << i;
    ASSERT_NEAR(state.m.values<float>()[i], reference.m[i], 1e-6) << i;
    ASSERT_NEAR(state.v.values<float>()[i], reference.v[i], 1e-6) << i;
    ASSERT_NEAR(state.average.values<float>()[i], reference.average[i], 1e-5) << i;
  }
}

TEST(Adam, LeavesParametersWithoutGradientAsTheyAre) {
  Tensor used = leaf(normal({4, 4}, {.seed = 1})), unused = leaf(normal({4, 4}, {.seed = 2}));
  const Tensor used_before = used.clone(), unused_before = unused.clone();
  Adam adam({{"used", &used}, {"unused", &unused}}, {.kind = OptimizerKind::adamw, .weight_decay = 0.5});
  set_gradient(used, Tensor::full({4, 4}, 1, {.dtype = DType::f64}));
  EXPECT_DOUBLE_EQ(adam.step(0.1), 4.0);
  EXPECT_FALSE(same_bits(used, used_before));
  EXPECT_TRUE(same_bits(unused, unused_before));
}

// A matrix and a vector on a device, and what Adam keeps of them.
struct OnDevice {
  Tensor p, b;
  Adam adam;

  OnDevice(const Device& device, double clip_norm)
      : p(leaf(normal({40, 33}, {.dtype = DType::f32, .seed = 1}).to(device))),
        b(leaf(normal({33}, {.dtype = DType::f32, .seed = 2}).to(device))),
        adam({{"p", &p}, {"b", &b}}, {.kind = OptimizerKind::adamw, .weight_decay = 0.1, .clip_norm = clip_norm}, 0.9) {
  }
  OnDevice(const OnDevice&) = delete;  // Adam has the addresses of its parameters
  OnDevice& operator=(const OnDevice&) = delete;

  void set_gradients(uint64_t seed) const {
    set_gradient(p, normal({40, 33}, {.dtype = DType::f32, .seed = seed}).to(p.device()));
    set_gradient(b, normal({33}, {.dtype = DType::f32, .seed = seed + 1}).to(b.device()));
  }
  /// Parameters, and of each the moments and the average, on the CPU.
  std::vector<Tensor> copies() const {
    std::vector<Tensor> all = {p.detach(), b.detach()};
    for (const AdamState& s : adam.states()) all.insert(all.end(), {s.m, s.v, s.average});
    for (Tensor& x : all) x = x.clone().to(Cpu{});
    return all;
  }
};

std::vector<Tensor> after_three_steps(const Device& device, double clip_norm) {
  OnDevice on(device, clip_norm);
  for (const uint64_t seed : {10, 20, 30}) {
    on.set_gradients(seed);
    on.adam.step(0.01);
  }
  return on.copies();
}

void expect_same_bits(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i])) << i;
}

// The norms are near 37.
TEST(Adam, IsTheSameOnEveryDevice) {
  for (const double clip_norm : {0.0, 5.0, 1000.0}) {
    const std::vector<Tensor> expected = after_three_steps(Cpu{}, clip_norm);
    for (const Device& device : devices_under_test()) {
      const std::vector<Tensor> found = after_three_steps(device, clip_norm);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_LT(relative_error(found[i], expected[i]), 1e-5) << i << " with clip_norm = " << clip_norm;
    }
  }
  for (const Device& device : all_devices()) {
    const std::vector<Tensor> unclipped = after_three_steps(device, 0);
    expect_same_bits(after_three_steps(device, 1000), unclipped);
    EXPECT_GT(relative_error(after_three_steps(device, 5)[2], unclipped[2]), 0.5) << "the moment of p";
  }
}

// Neither a bad gradient nor a bad number beside the norm leaves a trace in what a good step makes later.
TEST(Adam, ChangesNothingWhenANumberIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  for (const Device& device : all_devices()) {
    SCOPED_TRACE(device.text());
    OnDevice on(device, 1), undisturbed(device, 1);
    const std::vector<Tensor> before = on.copies();
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      on.set_gradients(10);
      gradient(on.b).rows(7, 8).fill(bad);
      EXPECT_FALSE(std::isfinite(on.adam.step(0.1)));
      expect_same_bits(on.copies(), before);
      on.set_gradients(10);
      on.adam.start_step(0.1, Tensor::from({3}, std::vector<double>{4, 5, bad}, device));
      expect_same_bits(on.copies(), before);
    }
    EXPECT_EQ(on.adam.steps(), 0);

    undisturbed.set_gradients(10);
    const Tensor numbers = Tensor::zeros({2}, {DType::f64, device});
    on.adam.add_squares(numbers.rows(0, 1));
    on.adam.start_step(0.1, numbers);
    on.adam.count_step();
    undisturbed.adam.step(0.1);
    EXPECT_EQ(on.adam.steps(), 1);
    const std::vector<Tensor> found = on.copies();
    expect_same_bits(found, undisturbed.copies());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_FALSE(same_bits(found[i], before[i])) << i;
  }
}

TEST(Adam, ContinuesFromStoredStates) {
  const auto train = [](Adam& adam, Tensor& p, int begin, int end) {
    for (int t = begin; t < end; ++t) {
      set_gradient(p, normal({33}, {.dtype = DType::f32, .seed = static_cast<uint64_t>(t)}));
      adam.step(0.01);
    }
  };
  Tensor whole = leaf(Tensor::zeros({33})), first = leaf(Tensor::zeros({33}));
  Adam uninterrupted({{"p", &whole}}, {}, 0.99);
  train(uninterrupted, whole, 0, 8);
  Adam before({{"p", &first}}, {}, 0.99);
  train(before, first, 0, 5);

  Tensor second = leaf(first.clone());
  Adam after({{"p", &second}}, {}, 0.99);
  const AdamState &from = before.states()[0], &to = after.states()[0];
  EXPECT_EQ(to.name, "p");
  to.m.copy_from(from.m);
  to.v.copy_from(from.v);
  to.average.copy_from(from.average);
  after.set_steps(before.steps());
  train(after, second, 5, 8);
  EXPECT_TRUE(same_bits(second, whole));
  EXPECT_TRUE(same_bits(to.average, uninterrupted.states()[0].average));
}

TEST(Adam, RefusesNumbersOutOfRange) {
  Tensor p = leaf(Tensor::zeros({2}));
  EXPECT_EQ(message_of<ConfigError>([&] {
              Adam({{"p", &p}}, {.beta_1 = 1});
            }),
            "beta_1 = 1: needs a number from 0 to below 1");
  EXPECT_EQ(message_of<ConfigError>([&] {
              Adam({{"p", &p}}, {.epsilon = 0});
            }),
            "epsilon = 0: needs a positive number");
  EXPECT_EQ(message_of<ConfigError>([&] {
              Adam({{"p", &p}}, {.weight_decay = std::nan("")});
            }),
            "weight_decay = nan: needs a number from 0 to 1000000");
  EXPECT_EQ(message_of<ConfigError>([&] {
              Adam({{"p", &p}}, {.clip_norm = -1});
            }),
            "clip_norm = -1: needs a number from 0 to 1000000");
  EXPECT_EQ(message_of<ConfigError>([&] {
              Adam({{"p", &p}}, {}, -0.5);
            }),
            "moving_average = -0.5: needs a number from 0 to below 1");
}

TEST(Adam, NeedsARangeAndARateForEachParameter) {
  Tensor a = leaf(Tensor::zeros({2})), b = leaf(Tensor::zeros({2}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              Adam({{"a", &a}, {"b", &b}}, {}, 0, {{0, 2}});
            }),
            "adam: 1 ranges for 2 parameters");
  EXPECT_EQ(message_of<ShapeError>([&] {
              Adam({{"a", &a}, {"b", &b}}, {}, 0, {}, {0.5});
            }),
            "adam: 1 rates for 2 parameters");
}

TEST(Adam, RefusesGradientsOnAnotherDeviceThanTheirParameter) {
  Tensor a = leaf(Tensor::zeros({2})), b = leaf(Tensor::zeros({2}));
  Adam adam({{"a", &a}, {"b", &b}}, {});
  set_gradient(a, Tensor::full({2}, 1));
  set_gradient(b, Tensor::full({2}, 1, {.device = Plain{}}));
  EXPECT_EQ(message_of<ShapeError>([&] { adam.step(0.1); }), "adam: b is on cpu, but its gradient on plain");
  EXPECT_EQ(a.data<float>()[0], 0);
  EXPECT_EQ(adam.steps(), 0);
}

TEST(Adam, RefusesParametersOnSeveralDevices) {
  Tensor a = leaf(Tensor::zeros({2})), b = leaf(Tensor::zeros({2}, {.device = Plain{}}));
  EXPECT_EQ(message_of<ShapeError>([&] { Adam({{"a", &a}, {"b", &b}}, {}); }), "adam: b is on plain, but a on cpu");
}

}  // namespace
}  // namespace attune
