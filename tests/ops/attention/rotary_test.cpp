#include "attune/ops/attention/rotary.h"
#include "attune/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "attune/autograd/graph.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

Indices positions_from(int64_t n, int32_t first) {
  std::vector<int32_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Su et al. 2021, eq. 34, element by element in float64.
Tensor plain_rotary(const Tensor& input, const Indices& positions, const RotaryOptions& options) {
  const Tensor x = input.to(DType::f64);
  const Tensor y = x.clone();
  const int64_t heads = x.size(1), d = x.size(2), rotated = options.dimensions == 0 ? d : options.dimensions;
  const RotaryFrequencies f = rotary_frequencies(options, rotated);
  for (int64_t i = 0; i < x.size(0) * heads; ++i) {
    for (int64_t p = 0; p < rotated / 2; ++p) {
      const bool half = options.pairing == RotaryPairing::half;
      const int64_t a = i * d + (half ? p : 2 * p), b = i * d + (half ? p + rotated / 2 : 2 * p + 1);
      const double angle = positions[i / heads] * f.frequencies[static_cast<size_t>(p)];
      y.data<double>()[a] =
          (x.data<double>()[a] * std::cos(angle) - x.data<double>()[b] * std::sin(angle)) * f.magnitude;
      y.data<double>()[b] =
          (x.data<double>()[b] * std::cos(angle) + x.data<double>()[a] * std::sin(angle)) * f.magnitude;
    }
  }
  return y;
}

const RotaryOptions kForms[] = {
    {},
    {.pairing = RotaryPairing::interleaved},
    {.base = 500, .dimensions = 6},
    {.pairing = RotaryPairing::interleaved, .dimensions = 4},
    {.scaling = RotaryScaling::linear, .factor = 4},
    {.pairing = RotaryPairing::interleaved, .scaling = RotaryScaling::yarn, .factor = 8, .original_length = 64}};

TEST(Rotary, EqualsTheFormulaOnEveryTargetAndWidth) {
  const Indices positions{0, 1, 2, 0, 1, 7, 100, 4095, -3};
  for_each_target([&](const char* target) {
    for (const RotaryOptions& options : kForms) {
      for (const int64_t d : {6, 8, 14, 32, 50, 64}) {
        const Tensor x = normal({9, 3, d}, {.seed = 1});
        const Tensor expected = plain_rotary(x, positions, options);
        EXPECT_LT(relative_error(rotary(x, positions, options), expected), 1e-14) << target << " " << d;
        EXPECT_LT(relative_error(rotary(x.to(DType::f32), positions, options).to(DType::f64), expected), 3e-7)
            << target << " " << d;
      }
    }
  });
}

TEST(Rotary, GradientMatchesFiniteDifferences) {
  for (const RotaryOptions& options : kForms) {
    for (const Indices& positions : {Indices{3, 4, 4, 5}, Indices{9, 400, 0, 17}})  // of one table, and each its own
      EXPECT_LT(gradient_error([&](auto& x) { return rotary(x, positions, options); }, normal({4, 2, 10})), 1e-8);
  }
}

TEST(Rotary, Float32GradientsAgreeWithFloat64OnEveryTarget) {
  const auto run = [](Tensor x, const RotaryOptions& options) {
    require_gradient(x);
    backward(rotary(x, positions_from(30, 5), options), normal(x.shape(), {.dtype = x.dtype(), .seed = 2}));
    return gradient(x);
  };
  const Tensor x = normal({30, 2, 38}, {.seed = 1});
  for (const RotaryOptions& options : kForms) {
    const Tensor expected = run(x.detach(), options);
    for_each_target([&](const char* target) {
      EXPECT_LT(relative_error(run(x.to(DType::f32), options).to(DType::f64), expected), 3e-7) << target;
    });
  }
}

TEST(Rotary, ProductsDependOnTheDifferenceOfPositionsAlone) {
  rc::check([] {
    RotaryOptions options = kForms[*rc::gen::inRange<size_t>(0, std::size(kForms))];
    const int32_t i = *rc::gen::inRange(0, 5000), j = *rc::gen::inRange(0, 5000), shift = *rc::gen::inRange(0, 100000);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const Tensor q = normal({1, 1, 16}, {.seed = seed}), k = normal({1, 1, 16}, {.seed = seed + 1});
    const auto product = [&](int32_t at_q, int32_t at_k) {
      const Tensor a = rotary(q, Indices{at_q}, options), b = rotary(k, Indices{at_k}, options);
      return std::inner_product(a.data<double>(), a.data<double>() + 16, b.data<double>(), 0.0);
    };
    RC_ASSERT(std::abs(product(i, j) - product(i + shift, j + shift)) < 1e-8);
    RC_ASSERT(i == j || std::abs(product(i, j) - product(j, j)) > 0);
  });
}

TEST(Rotary, OtherRowsAndThreadsDoNotChangeARow) {
  const Tensor x = normal({3000, 2, 30}, {.dtype = DType::f32, .seed = 1});
  const Indices positions = positions_from(3000, 17);
  for (const RotaryOptions& options : kForms) {
    const auto [one, two] = with_one_and_two_threads([&] { return rotary(x, positions, options); });
    EXPECT_TRUE(same_bits(one, two));
    for (const int64_t row : {0, 1234, 2999}) {
      EXPECT_TRUE(
          same_bits(rotary(x.rows(row, row + 1), positions.slice(row, row + 1), options), one.rows(row, row + 1)));
    }
    // Far apart, so that each position is worked out on its own.
    const Tensor far = rotary(x.rows(5, 7), Indices{22, 1 << 30}, options);
    EXPECT_TRUE(same_bits(far.rows(0, 1), one.rows(5, 6)));
  }
}

TEST(Rotary, PositionZeroAndDimensionsBeyondStayAsTheyAre) {
  const Tensor x = normal({3, 2, 12}, {.dtype = DType::f32, .seed = 1});
  EXPECT_TRUE(same_bits(rotary(x, Indices{0, 0, 0}, {}), x));
  const Tensor y = rotary(x, Indices{5, 6, 7}, {.dimensions = 8});
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (i % 12 >= 8) {
      EXPECT_EQ(y.data<float>()[i], x.data<float>()[i]);
    }
  }
}

TEST(Rotary, FarPositionsNeitherOverflowNorAllocate) {
  constexpr int32_t least = std::numeric_limits<int32_t>::min(), most = std::numeric_limits<int32_t>::max();
  const Tensor x = normal({2, 1, 4}, {.seed = 1});
  EXPECT_LT(relative_error(rotary(x, Indices{least, most}, {}), plain_rotary(x, Indices{least, most}, {})), 1e-12);
  EXPECT_EQ(rotary(Tensor::zeros({0, 2, 4}), Indices{}, {}).shape(), (Shape{0, 2, 4}));
}

TEST(RotaryFrequencies, AreThoseOfThePaper) {
  const auto [frequencies, magnitude] = rotary_frequencies({.base = 10000}, 8);
  EXPECT_THAT(frequencies, testing::Pointwise(testing::DoubleNear(1e-15), {1.0, 0.1, 0.01, 0.001}));
  EXPECT_EQ(magnitude, 1);
  const auto scaled = rotary_frequencies({.scaling = RotaryScaling::linear, .factor = 4}, 8);
  EXPECT_THAT(scaled.frequencies, testing::Pointwise(testing::DoubleNear(1e-15), {0.25, 0.025, 0.0025, 0.00025}));
  EXPECT_EQ(scaled.magnitude, 1);
}

// Peng et al. 2023, section 3.2: with r the trained context over the wave length and the ramp
//   gamma(r) = 0 below alpha, 1 above beta, (r - alpha) / (beta - alpha) between,
// a frequency becomes (1 - gamma) theta / s + gamma theta; section 3.4: sqrt(1 / t) = 0.1 ln(s) + 1.
TEST(RotaryFrequencies, OfYarnFollowTheRampOfThePaper) {
  constexpr double base = 10000, s = 16, length = 4096, alpha = 1, beta = 32;
  constexpr int64_t d = 128;
  const auto [frequencies, magnitude] =
      rotary_frequencies({.base = base, .scaling = RotaryScaling::yarn, .factor = s, .original_length = 4096}, d);
  EXPECT_NEAR(magnitude, 0.1 * std::log(s) + 1, 1e-15);
  ASSERT_EQ(frequencies.size(), d / 2);
  int between = 0;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double theta = std::pow(base, -2.0 * static_cast<double>(i) / d);
    const double wave_length = 2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(i) / d);
    const double r = length / wave_length;
    const double gamma = r < alpha ? 0 : r > beta ? 1 : (r - alpha) / (beta - alpha);
    between += gamma > 0 && gamma < 1;
    EXPECT_NEAR(frequencies[i] / ((1 - gamma) * theta / s + gamma * theta), 1, 1e-13) << i;
  }
  EXPECT_GT(between, 10);
  EXPECT_EQ(frequencies.front(), 1);
}

TEST(RotaryOptions, NameTheFieldAndTheValue) {
  const auto message = [](const RotaryOptions& options) {
    return message_of<ConfigError>([&] { options.validate(); });
  };
  const RotaryOptions yarn{.scaling = RotaryScaling::yarn, .factor = 2, .original_length = 8};
  yarn.validate();
  EXPECT_EQ(message({.base = 0.5}), "base = 0.5: needs a finite number of at least 1");
  EXPECT_EQ(message({.base = std::nan("")}), "base = nan: needs a finite number of at least 1");
  EXPECT_EQ(message({.dimensions = 7}), "dimensions = 7: needs an even number, or 0 for all");
  EXPECT_EQ(message({.scaling = RotaryScaling::linear, .factor = 0}),
            "factor = 0: needs a finite number of at least 1");
  RotaryOptions options = yarn;
  options.original_length = 0;
  EXPECT_EQ(message(options), "original_length = 0: yarn needs the context that was trained with");
  options = yarn;
  options.beta_slow = -1;
  EXPECT_EQ(message(options), "beta_slow = -1: needs a finite number of at least 0");
  options = yarn;
  options.beta_fast = 1;
  EXPECT_EQ(message(options), "beta_fast = 1: needs a finite number above beta_slow = 1");
}

TEST(RotaryOptions, AreReadAsTheyWereWritten) {
  const RotaryOptions options{.base = 5e5,
                              .pairing = RotaryPairing::interleaved,
                              .dimensions = 64,
                              .scaling = RotaryScaling::yarn,
                              .factor = 4,
                              .original_length = 2048,
                              .beta_fast = 16,
                              .beta_slow = 2};
  const Json json = write_fields(options);
  EXPECT_EQ(json["pairing"], "interleaved");
  EXPECT_EQ(json["scaling"], "yarn");
  RotaryOptions read;
  read_fields(json, read, "rotary");
  EXPECT_EQ(read, options);
}

TEST(Rotary, NamesWhatDoesNotFit) {
  const auto message = [](const Tensor& x, const Indices& positions, const RotaryOptions& options = {}) {
    return message_of<ShapeError>([&] { rotary(x, positions, options); });
  };
  EXPECT_EQ(message(Tensor::zeros({2, 1, 7}), Indices{0, 1}),
            "rotary: x [2, 1, 7] has d = 7, pairs need an even number");
  EXPECT_EQ(message(Tensor::zeros({2, 1, 4}), Indices{0, 1}, {.dimensions = 6}),
            "rotary: x [2, 1, 4] has d = 4, fewer than dimensions = 6");
  EXPECT_EQ(message(Tensor::zeros({2, 1, 4}), Indices{0}), "rotary: x [2, 1, 4] has 2 rows but there are 1 positions");
  EXPECT_THROW(rotary(Tensor::zeros({2, 4}), Indices{0, 1}, {}), ShapeError);
  EXPECT_THROW(rotary({}, Indices{}, {}), ShapeError);
  EXPECT_THROW(rotary(Tensor::zeros({2, 1, 4}), {}, {}), ShapeError);
  EXPECT_THROW(rotary(Tensor::zeros({2, 1, 4}), Indices{0, 1}, {.base = 0}), ConfigError);
}

TEST(Rotary, TurnsTheFirstHeadsAndCopiesTheOthers) {
  const Tensor x = normal({6, 5, 8}, {.seed = 1});
  const Indices positions{0, 1, 2, 0, 7, 3};
  const Tensor all = rotary(x, positions, {}), some = rotary(x, positions, {}, 3);
  for (int64_t i = 0; i < x.numel(); ++i)
    ASSERT_EQ(some.data<double>()[i], (i / 8 % 5 < 3 ? all : x).data<double>()[i]) << i;
  EXPECT_LT(gradient_error([&](auto& t) { return rotary(t, positions, {}, 3); }, x), 1e-8);
  EXPECT_EQ(message_of<ShapeError>([&] { rotary(x, positions, {}, 6); }),
            "rotary: x [6, 5, 8] has 5 heads, 6 are to be rotated");
}

TEST(Rotary, IsTheSameOnEveryDevice) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = normal({4, 3, 10}, {.dtype = dtype, .seed = 1});
    for (const RotaryOptions& options : kForms) {
      for (const Indices& positions : {Indices{3, 4, 4, 5}, Indices{9, 400, 0, 17}}) {
        for (const int64_t heads : {0, 2, 3}) {
          EXPECT_LT(
              device_error([&](const std::vector<Tensor>& t) { return rotary(t[0], positions, options, heads); }, {x}),
              dtype == DType::f32 ? 1e-5 : 1e-12);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attune
