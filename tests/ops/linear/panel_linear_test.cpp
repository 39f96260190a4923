#include "attune/ops/linear/panel_linear.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "attune/ops/activation.h"
#include "attune/ops/linear/precision.h"
#include "tests/ops/activations.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8,
                                     WeightFormat::int4};

Tensor random(const Shape& shape, uint64_t seed) {
  return normal(shape, {.dtype = DType::f32, .seed = seed});
}

// x to 8 bits, by the largest number of each row (int8) or of each 32 numbers (int4).
Tensor rounded(const Tensor& x, WeightFormat format) {
  Tensor result = x.to(DType::f64);
  if (!is_quantised(format)) return result;
  const int64_t in = x.size(1), length = format == WeightFormat::int8 ? in : 32;
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t begin = 0; begin < in; begin += length) {
      const int64_t end = std::min(in, begin + length);
      float largest = 0;
      for (int64_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(x.data<float>()[r * in + k]));
      for (int64_t k = begin; k < end; ++k)
        result.data<double>()[r * in + k] =
            std::nearbyint(x.data<float>()[r * in + k] * (127 / largest)) * double{largest} / 127;
    }
  }
  return result;
}

// One number at a time, in float64, of what the product is to read.
Tensor reference(const Tensor& x, const PanelWeight& w, const Tensor& b) {
  const Tensor x64 = rounded(x, w.format()), w64 = w.to_matrix().to(DType::f64);
  Tensor y = Tensor::empty({x.size(0), w.out()}, {.dtype = DType::f64});
  for (int64_t r = 0; r < x.size(0); ++r) {
    for (int64_t o = 0; o < w.out(); ++o) {
      double sum = b.defined() ? b.data<float>()[o] : 0;
      for (int64_t k = 0; k < w.in(); ++k)
        sum += x64.data<double>()[r * w.in() + k] * w64.data<double>()[o * w.in() + k];
      y.data<double>()[r * w.out() + o] = sum;
    }
  }
  return y;
}

RC_GTEST_PROP(PanelLinear, AgreesWithTheFormula, ()) {
  const auto format = *rc::gen::elementOf(std::vector<WeightFormat>(std::begin(kFormats), std::end(kFormats)));
  const auto rows = *rc::gen::inRange<int64_t>(1, 50), in = *rc::gen::inRange<int64_t>(1, 300),
             out = *rc::gen::inRange<int64_t>(1, 200);
  const PanelWeight w = PanelWeight::lay_out(random({out, in}, 1), format);
  const Tensor x = random({rows, in}, 2), b = *rc::gen::arbitrary<bool>() ? random({out}, 3) : Tensor{};
  RC_ASSERT(relative_error(panel_linear(x, w, b).to(DType::f64), reference(x, w, b)) < 4e-6);
}

TEST(PanelLinear, AgreesWithTheFormulaOnEveryProcessor) {
  for_each_target([&](const char* target) {
    for (const WeightFormat format : kFormats) {
      for (const int64_t in : {64, 128, 37, 100}) {
        const PanelWeight w = PanelWeight::lay_out(random({200, in}, 1), format);
        const Tensor b = random({200}, 3);
        for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 33, 70}) {
          const Tensor x = random({rows, in}, static_cast<uint64_t>(rows));
          const Tensor y = panel_linear(x, w, b);
          EXPECT_LT(relative_error(y.to(DType::f64), reference(x, w, b)), 4e-6)
              << target << " " << enum_name(format) << " " << rows << " x " << in;
        }
      }
    }
  });
}

// Sums of integers are exact and what follows is rounded step by step, so that every processor has the same bits; so
// have those that multiply and add in one step, of float32.
TEST(PanelLinear, HasTheSameBitsOnEveryProcessor) {
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    const PanelWeight w = PanelWeight::lay_out(random({100, 192}, 1), format);
    const Tensor x = random({40, 192}, 2), b = random({100}, 3);
    const Tensor expected = panel_linear(x, w, b, Activation::relu);
    for_each_target([&](const char* target) {
      EXPECT_TRUE(same_bits(panel_linear(x, w, b, Activation::relu), expected)) << target << " " << enum_name(format);
    });
  }
}

// Widening is exact and the sums are formed in one order, so that weights in bfloat16 are weights in float32.
TEST(PanelLinear, Bfloat16HasTheBitsOfFloat32) {
  for_each_target([&](const char* target) {
    for (const int64_t in : {1, 2, 64, 75}) {
      const PanelWeight narrow = PanelWeight::lay_out(random({200, in}, 1), WeightFormat::bfloat16),
                        wide = PanelWeight::lay_out(narrow.to_matrix(), WeightFormat::float32);
      const Tensor b = random({200}, 3);
      for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 33}) {
        const Tensor x = random({rows, in}, 2), expected = panel_linear(x, wide, b, Activation::silu);
        EXPECT_TRUE(same_bits(panel_linear(x, narrow, b, Activation::silu), expected)) << target << " " << rows;
        const std::vector<PanelParameters> both = {{&wide, b}, {&narrow, b}};
        std::array<Tensor, 2> each;
        panel_linear_each(x, both, each);
        EXPECT_TRUE(same_bits(each[0], each[1])) << target << " " << rows;
      }
    }
  });
}

// Inputs in bfloat16 too: sums are float32, in an order that each processor's instructions choose, but the same for any
// rows and threads.
TEST(PanelLinear, OfBfloat16InputsAgreesWithTheFormulaForAnyRows) {
  for_each_target([&](const char* target) {
    for (const int64_t in : {1, 37, 64, 75, 320}) {
      const PanelWeight w = PanelWeight::lay_out(random({333, in}, 1), WeightFormat::bfloat16);
      const Tensor b = random({333}, 3), x = to_bfloat16(random({67, in}, 2));
      const auto [one, two] = with_one_and_two_threads([&] { return panel_linear(x, w, b, Activation::relu); });
      EXPECT_EQ(one.dtype(), DType::f32);
      const Tensor expected = relu(reference(to_float32(x), w, b));
      EXPECT_LT(relative_error(one.to(DType::f64), expected), 4e-6) << target << " " << in;
      EXPECT_TRUE(same_bits(one, two)) << target;
      for (const auto& [begin, end] : std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {66, 67}, {3, 8}, {10, 43}}) {
        const Tensor some = panel_linear(x.rows(begin, end), w, b, Activation::relu);
        EXPECT_TRUE(same_bits(some, one.rows(begin, end))) << target << " " << in << " " << begin << " to " << end;
      }
      for (const Device& device : devices_under_test()) {
        const Tensor found = panel_linear(x.to(device), w.to(device), b.to(device), Activation::relu);
        EXPECT_LT(relative_error(found.to(Cpu{}).to(DType::f64), expected), 4e-6) << device.text();
      }
      const std::vector<int32_t> some = {0, 7, 8, 332};
      const std::vector<std::span<const int32_t>> columns = {some, some, {}};
      const Tensor selected = panel_linear_columns(x.rows(0, 3), w, b, columns), all = panel_linear(x.rows(0, 3), w, b);
      for (int64_t r = 0; r < 2; ++r)
        for (size_t j = 0; j < some.size(); ++j)
          EXPECT_EQ(selected.data<float>()[r * 4 + static_cast<int64_t>(j)], all.data<float>()[r * 333 + some[j]])
              << target << " " << in;
    }
  });
}

TEST(PanelLinear, RowsDoNotDependOnTheBatchNorOnThreads) {
  for_each_target([&](const char* target) {
    for (const WeightFormat format : kFormats) {
      for (const int64_t in : {128, 75}) {
        const PanelWeight w = PanelWeight::lay_out(random({333, in}, 1), format);
        const Tensor x = random({67, in}, 2), b = random({333}, 3);
        const auto [one, two] = with_one_and_two_threads([&] { return panel_linear(x, w, b, Activation::gelu); });
        EXPECT_TRUE(same_bits(one, two)) << target << " " << enum_name(format);
        for (const auto& [begin, end] :
             std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {66, 67}, {3, 5}, {3, 8}, {10, 17}, {0, 16}, {7, 40}}) {
          const Tensor some = panel_linear(x.rows(begin, end), w, b, Activation::gelu);
          EXPECT_TRUE(same_bits(some, one.rows(begin, end)))
              << target << " " << enum_name(format) << " " << begin << " to " << end;
        }
      }
    }
  });
}

TEST(PanelLinear, AppliesActivations) {
  for_each_target([&](const char* target) {
    const std::pair<Activation, Tensor (*)(const Tensor&)> activations[] = {
        {Activation::relu, relu},           {Activation::gelu, gelu},
        {Activation::gelu_tanh, gelu_tanh}, {Activation::gelu_sigmoid, gelu_sigmoid},
        {Activation::silu, silu},           {Activation::tanh, tanh}};
    for (const WeightFormat format : kFormats) {
      const PanelWeight w = PanelWeight::lay_out(random({40, 33}, 1), format);
      const Tensor b = random({40}, 3);
      for (const int64_t rows : {1, 20}) {
        const Tensor x = random({rows, 33}, 2), plain = panel_linear(x, w, b);
        for (const auto& [fused, separate] : activations)
          EXPECT_LT(relative_error(panel_linear(x, w, b, fused).to(DType::f64), separate(plain).to(DType::f64)), 1e-6)
              << target << " " << enum_name(format);
      }
    }
  });
}

TEST(PanelLinear, SideBySideIsOneAfterTheOther) {
  for_each_target([&](const char* target) {
    for (const WeightFormat format : kFormats) {
      const PanelWeight w_0 = PanelWeight::lay_out(random({40, 64}, 1), format),
                        w_1 = PanelWeight::lay_out(random({16, 64}, 2), format),
                        w_2 = PanelWeight::lay_out(random({100, 64}, 3), format);
      const Tensor b_0 = random({40}, 4), b_2 = random({100}, 5);
      for (const int64_t rows : {1, 9, 40}) {
        const Tensor x = random({rows, 64}, 6);
        const std::vector<PanelParameters> parameters = {{&w_0, b_0}, {&w_1, {}}, {&w_2, b_2}};
        const Tensor all = fused_panel_linear(x, parameters);
        ASSERT_EQ(all.shape(), Shape({rows, 156}));
        int64_t column = 0;
        for (const auto& [weight, bias] : parameters) {
          const Tensor y = panel_linear(x, *weight, bias);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t o = 0; o < weight->out(); ++o)
              ASSERT_EQ(all.data<float>()[r * 156 + column + o], y.data<float>()[r * weight->out() + o])
                  << target << " " << enum_name(format);
          column += weight->out();
        }
      }
    }
  });
}

TEST(PanelLinear, ColumnsAreThoseOfTheWholeProduct) {
  for_each_target([&](const char* target) {
    for (const WeightFormat format : kFormats) {
      const PanelWeight w = PanelWeight::lay_out(random({500, 75}, 1), format);
      const Tensor x = random({12, 75}, 2);
      std::vector<int32_t> some = {0, 7, 8, 499}, others = {3}, none, many;
      for (int32_t i = 0; i < 300; ++i) many.push_back((i * 7) % 500);
      std::vector<std::span<const int32_t>> columns = {some, some, others, none, some, many,
                                                       many, many, many,   many, many, others};
      for (const Tensor& bias : {random({500}, 3), Tensor{}}) {
        const Tensor all = panel_linear(x, w, bias);
        const auto [one, two] = with_one_and_two_threads([&] { return panel_linear_columns(x, w, bias, columns); });
        ASSERT_EQ(one.shape(), Shape({12, 300}));
        EXPECT_TRUE(same_bits(one, two));
        for (int64_t r = 0; r < 12; ++r) {
          const auto& list = columns[static_cast<size_t>(r)];
          for (int64_t j = 0; j < 300; ++j) {
            const float found = one.data<float>()[r * 300 + j];
            if (j >= static_cast<int64_t>(list.size())) {
              EXPECT_EQ(found, -std::numeric_limits<float>::infinity());
            } else {
              ASSERT_EQ(found, all.data<float>()[r * 500 + list[static_cast<size_t>(j)]])
                  << target << " " << enum_name(format) << " row " << r << " column " << j;
            }
          }
        }
      }
    }
  });
}

// To the bit of integers, as long as no activation comes after them whose formula is evaluated in another way.
void expect_like_cpu(const Tensor& found, const Tensor& expected, bool exactly) {
  if (exactly) {
    EXPECT_TRUE(same_bits(found.to(Cpu{}), expected));
  } else {
    EXPECT_LT(relative_error(found, expected), 1e-5);
  }
}

// Calls f with each of devices_under_test() and each format, and whether that format's products are exact.
template <class F>
void for_each_device_and_format(F&& f) {
  for (const Device& device : devices_under_test()) {
    for (const WeightFormat format : kFormats) {
      SCOPED_TRACE(device.text() + " " + enum_name(format));
      f(device, format, is_quantised(format));
    }
  }
}

TEST(PanelLinear, IsTheSameOnEveryDevice) {
  for_each_device_and_format([](const Device& device, WeightFormat format, bool exact) {
    for (const int64_t in : {64, 75}) {
      const PanelWeight w = PanelWeight::lay_out(random({50, in}, 1), format), on_device = w.to(device);
      Tensor x = random({2, 9, in}, 2);
      std::fill_n(x.data<float>(), in, 0.0f);  // a row without a scale
      for (const Tensor& b : {random({50}, 3), Tensor{}}) {
        const Tensor bias = b.defined() ? b.to(device) : b;
        for (const Activation activation : kActivations)
          expect_like_cpu(panel_linear(x.to(device), on_device, bias, activation), panel_linear(x, w, b, activation),
                          exact && (activation == Activation::none || activation == Activation::relu));
      }
    }
  });
}

TEST(PanelLinear, SeveralAreTheSameOnEveryDevice) {
  for_each_device_and_format([](const Device& device, WeightFormat format, bool exact) {
    const PanelWeight w_0 = PanelWeight::lay_out(random({40, 64}, 1), format),
                      w_1 = PanelWeight::lay_out(random({17, 64}, 2), format), there_0 = w_0.to(device),
                      there_1 = w_1.to(device);
    const Tensor x = random({9, 64}, 6), b = random({40}, 4);
    const std::vector<PanelParameters> parameters = {{&w_0, b}, {&w_1, {}}};
    const std::vector<PanelParameters> there = {{&there_0, b.to(device)}, {&there_1, {}}};
    expect_like_cpu(fused_panel_linear(x.to(device), there), fused_panel_linear(x, parameters), exact);
    std::array<Tensor, 2> found, expected;
    panel_linear_each(x.to(device), there, found);
    panel_linear_each(x, parameters, expected);
    for (size_t i = 0; i < 2; ++i) expect_like_cpu(found[i], expected[i], exact);
  });
}

TEST(PanelLinear, ColumnsAreTheSameOnEveryDevice) {
  const std::vector<int32_t> some = {0, 7, 8, 499}, others = {3, 17, 400, 20};
  const std::vector<std::span<const int32_t>> columns = {some, some, others};
  const std::vector<int32_t> shorter = {5};
  const std::vector<std::span<const int32_t>> with_infinities = {shorter, some, {}};
  for_each_device_and_format([&](const Device& device, WeightFormat format, bool exact) {
    const PanelWeight w = PanelWeight::lay_out(random({500, 75}, 1), format), on_device = w.to(device);
    const Tensor x = random({3, 75}, 2), b = random({500}, 3);
    expect_like_cpu(panel_linear_columns(x.to(device), on_device, b.to(device), columns),
                    panel_linear_columns(x, w, b, columns), exact);
    if (exact)
      expect_like_cpu(panel_linear_columns(x.to(device), on_device, {}, with_infinities),
                      panel_linear_columns(x, w, {}, with_infinities), exact);
  });
}

// Quantised products stay near those of the weights that the panels were made from.
TEST(PanelLinear, LosesLittle) {
  const Tensor weight = random({256, 512}, 1), x = random({8, 512}, 2);
  const Tensor exact = reference(x, PanelWeight::lay_out(weight, WeightFormat::float32), {});
  for (const auto& [format, most] : {std::pair{WeightFormat::int8, 0.015}, std::pair{WeightFormat::int4, 0.09}}) {
    const Tensor y = panel_linear(x, PanelWeight::lay_out(weight, format), {}).to(DType::f64);
    double error = 0, power = 0;
    for (int64_t i = 0; i < y.numel(); ++i) {
      error += std::pow(y.data<double>()[i] - exact.data<double>()[i], 2);
      power += std::pow(exact.data<double>()[i], 2);
    }
    EXPECT_LT(std::sqrt(error / power), most) << enum_name(format);
  }
}

TEST(PanelLinear, ShowsBrokenRowsAndKeepsOthers) {
  for_each_target([&](const char* target) {
    for (const WeightFormat format : kFormats) {
      const PanelWeight w = PanelWeight::lay_out(random({20, 40}, 1), format);
      Tensor x = Tensor::zeros({4, 40});
      for (int64_t k = 0; k < 40; ++k) x.data<float>()[k] = x.data<float>()[120 + k] = static_cast<float>(k);
      const Tensor before = panel_linear(x, w, {});
      x.data<float>()[40 + 7] = std::nanf("");
      x.data<float>()[80 + 39] = std::numeric_limits<float>::infinity();
      const Tensor after = panel_linear(x, w, {});
      EXPECT_TRUE(same_bits(after.rows(0, 1), before.rows(0, 1))) << target;
      EXPECT_TRUE(same_bits(after.rows(3, 4), before.rows(3, 4))) << target;
      for (int64_t i = 20; i < 60; ++i)
        EXPECT_FALSE(std::isfinite(after.data<float>()[i])) << target << " " << enum_name(format) << " " << i;
      for (int64_t i = 20; i < 60; ++i) EXPECT_EQ(before.data<float>()[i], 0) << target;  // of a row of zeros
    }
  });
}

TEST(PanelLinear, ShowsBrokenRowsOnEveryDevice) {
  for_each_device_and_format([](const Device& device, WeightFormat format, bool) {
    Tensor x = Tensor::zeros({2, 40});
    x.data<float>()[7] = std::nanf("");
    x.data<float>()[40 + 39] = std::numeric_limits<float>::infinity();
    const PanelWeight w = PanelWeight::lay_out(random({20, 40}, 1), format).to(device);
    const Tensor y = panel_linear(x.to(device), w, {}).to(Cpu{});
    for (int64_t i = 0; i < y.numel(); ++i) EXPECT_FALSE(std::isfinite(y.data<float>()[i])) << i;
  });
}

TEST(PanelLinear, KeepsTheOuterShape) {
  const PanelWeight w = PanelWeight::lay_out(random({6, 4}, 1), WeightFormat::float32);
  EXPECT_EQ(panel_linear(random({2, 3, 4}, 2), w, {}).shape(), Shape({2, 3, 6}));
  EXPECT_EQ(panel_linear(Tensor::zeros({0, 4}), w, {}).shape(), Shape({0, 6}));
}

TEST(PanelLinear, AWeightMayHaveNoOutputs) {
  for (const WeightFormat format : kFormats) {
    const PanelWeight none = PanelWeight::lay_out(Tensor::zeros({0, 4}), format);
    EXPECT_EQ(panel_linear(random({2, 4}, 1), none, {}).shape(), Shape({2, 0})) << enum_name(format);
  }
}

TEST(PanelLinear, RefusesWhatDoesNotFit) {
  const PanelWeight w = PanelWeight::lay_out(random({6, 4}, 1), WeightFormat::float32),
                    narrow = PanelWeight::lay_out(random({6, 4}, 1), WeightFormat::int8);
  EXPECT_EQ(message_of<ShapeError>([&] {
              panel_linear(Tensor::zeros({1, 5}), w, {});
            }),
            "panel_linear: input [1, 5] has 5 columns but the weight [6, 4] takes 4");
  EXPECT_THROW(panel_linear(normal({1, 4}), w, {}), ShapeError);
  EXPECT_THROW(panel_linear(Tensor::zeros({1, 4}, {.device = Plain{}}), w, {}), ShapeError);
  EXPECT_THROW(panel_linear(Tensor::zeros({1, 4}), w, Tensor::zeros({5})), ShapeError);
  EXPECT_THROW(fused_panel_linear(Tensor::zeros({1, 4}), {}), ShapeError);
  EXPECT_THROW(fused_panel_linear(Tensor::zeros({1, 4}), std::vector<PanelParameters>{{&w, {}}, {&narrow, {}}}),
               ShapeError);
  const std::vector<int32_t> list = {6};
  const std::vector<std::span<const int32_t>> columns = {list};
  EXPECT_EQ(message_of<ShapeError>([&] {
              panel_linear_columns(Tensor::zeros({1, 4}), w, {}, columns);
            }),
            "panel_linear_columns: column 6 of a weight [6, 4]");
  EXPECT_THROW(panel_linear_columns(Tensor::zeros({1, 4}), w, {}, {}), ShapeError);
}

}  // namespace
}  // namespace attune
