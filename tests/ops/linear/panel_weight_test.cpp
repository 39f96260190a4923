#include "attune/ops/linear/panel_weight.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "attune/ops/linear/precision.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/targets.h"

namespace attune {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8,
                                     WeightFormat::int4};

Tensor matrix(int64_t out, int64_t in, uint64_t seed = 1) {
  return normal({out, in}, {.dtype = DType::f32, .seed = seed});
}

// The largest magnitude among numbers `begin` to `end` of a row.
float largest(const Tensor& w, int64_t row, int64_t begin, int64_t end) {
  float most = 0;
  for (int64_t k = begin; k < end; ++k) most = std::max(most, std::abs(w.data<float>()[row * w.size(1) + k]));
  return most;
}

RC_GTEST_PROP(PanelWeight, MatrixIsWithinHalfAStep, ()) {
  const auto out = *rc::gen::inRange<int64_t>(1, 70), in = *rc::gen::inRange<int64_t>(1, 140);
  const Tensor w = matrix(out, in, *rc::gen::arbitrary<uint64_t>());
  RC_ASSERT(same_bits(PanelWeight::lay_out(w, WeightFormat::float32).to_matrix(), w));
  const Tensor int8 = PanelWeight::lay_out(w, WeightFormat::int8).to_matrix();
  RC_ASSERT(same_bits(PanelWeight::lay_out(w, WeightFormat::bfloat16).to_matrix(), to_float32(to_bfloat16(w))));
  const Tensor int4 = PanelWeight::lay_out(w, WeightFormat::int4).to_matrix();
  for (int64_t o = 0; o < out; ++o) {
    const float step = largest(w, o, 0, in) / 127;
    for (int64_t k = 0; k < in; ++k) {
      const float value = w.data<float>()[o * in + k],
                  group = largest(w, o, k / 32 * 32, std::min(in, k / 32 * 32 + 32));
      RC_ASSERT(std::abs(int8.data<float>()[o * in + k] - value) <= 0.5001f * step);
      RC_ASSERT(std::abs(int4.data<float>()[o * in + k] - value) <=
                0.224f * group);  // two steps of nine, where it is cut off
    }
  }
}

TEST(PanelWeight, Int4ChoosesTheScaleByItsError) {
  const Tensor w = matrix(64, 512);
  const Tensor found = PanelWeight::lay_out(w, WeightFormat::int4).to_matrix();
  double error = 0, of_plain_rounding = 0, power = 0;
  for (int64_t o = 0; o < 64; ++o) {
    for (int64_t k = 0; k < 512; ++k) {
      const float value = w.data<float>()[o * 512 + k], step = largest(w, o, k / 32 * 32, k / 32 * 32 + 32) / 7;
      error += std::pow(found.data<float>()[o * 512 + k] - value, 2);
      of_plain_rounding += std::pow(std::nearbyint(value / step) * step - value, 2);
      power += value * value;
    }
  }
  EXPECT_LT(error, 0.8 * of_plain_rounding);
  EXPECT_LT(std::sqrt(error / power), 0.085);
}

TEST(PanelWeight, RowsAreThoseOfTheWhole) {
  for (const WeightFormat format : kFormats) {
    const PanelWeight panels = PanelWeight::lay_out(matrix(37, 70), format);
    const Tensor all = panels.to_matrix(), some = panels.rows({36, 0, 16, 0});
    int64_t i = 0;
    for (const int64_t row : {36, 0, 16, 0}) {
      EXPECT_TRUE(same_bits(some.rows(i, i + 1), all.rows(row, row + 1)));
      ++i;
    }
    EXPECT_EQ(message_of<ShapeError>([&] { panels.rows({37}); }), "panel weight: row 37 of [37, 70]");
  }
}

TEST(PanelWeight, HasTheSameBytesOnEveryProcessor) {
  for (const WeightFormat format : kFormats) {
    const Tensor w = matrix(50, 75);
    const PanelWeight expected = PanelWeight::lay_out(w, format);
    for_each_target([&](const char* target) {
      const auto [one, two] = with_one_and_two_threads([&] { return PanelWeight::lay_out(w, format); });
      for (const PanelWeight& panels : {one, two}) {
        EXPECT_TRUE(same_bits(panels.storage(), expected.storage())) << target << " " << enum_name(format);
        if (panels.scales().defined()) {
          EXPECT_TRUE(same_bits(panels.scales(), expected.scales())) << target << " " << enum_name(format);
        }
        EXPECT_TRUE(same_bits(panels.to_matrix(), expected.to_matrix())) << target << " " << enum_name(format);
      }
    });
  }
}

void expect_same_bytes_on(const Device& device, const Tensor& w, WeightFormat format) {
  const PanelWeight expected = PanelWeight::lay_out(w, format), found = PanelWeight::lay_out(w.to(device), format);
  EXPECT_EQ(found.storage().device(), device);
  EXPECT_TRUE(same_bits(found.storage().to(Cpu{}), expected.storage()));
  if (expected.scales().defined()) {
    EXPECT_TRUE(same_bits(found.scales().to(Cpu{}), expected.scales()));
  }
  EXPECT_TRUE(same_bits(found.to_matrix().to(Cpu{}), expected.to_matrix()));
  EXPECT_TRUE(same_bits(expected.to(device).to_matrix().to(Cpu{}), expected.to_matrix()));
  if (w.size(0) == 50) {
    EXPECT_TRUE(same_bits(found.rows({49, 0, 16, 0}).to(Cpu{}), expected.rows({49, 0, 16, 0})));
  }
}

TEST(PanelWeight, HasTheSameBytesOnEveryDevice) {
  for (const Device& device : devices_under_test()) {
    for (const WeightFormat format : kFormats) {
      SCOPED_TRACE(device.text() + " " + enum_name(format));
      for (const auto& [out, in] : {std::pair<int64_t, int64_t>{50, 75}, {16, 64}, {1, 1}, {0, 4}})
        expect_same_bytes_on(device, matrix(out, in), format);
    }
  }
}

// Numbers of a file may begin anywhere, and an output may have an odd number of them.
TEST(PanelWeight, PacksBfloat16AsItsValuesInFloat32) {
  for (const auto& [out, in] : {std::pair<int64_t, int64_t>{50, 75}, {16, 64}, {33, 2}, {1, 1}, {0, 4}}) {
    const Tensor all = to_bfloat16(matrix(out * in + 1, 1)).reshape({-1});
    for (const int64_t begin : {0, 1}) {
      const Tensor narrow = all.rows(begin, begin + out * in).reshape({out, in}), wide = to_float32(narrow);
      for (const WeightFormat format : kFormats) {
        const PanelWeight expected = PanelWeight::lay_out(wide, format), found = PanelWeight::lay_out(narrow, format);
        EXPECT_TRUE(same_bits(found.storage(), expected.storage())) << enum_name(format) << " " << out << " " << in;
        for (const Device& device : devices_under_test()) {
          const PanelWeight there = PanelWeight::lay_out(narrow.to(device), format);
          EXPECT_TRUE(same_bits(there.storage().to(Cpu{}), expected.storage())) << enum_name(format);
        }
      }
    }
  }
}

// The layout that files hold.
TEST(PanelWeight, LiesInPanels) {
  Tensor w = Tensor::zeros({17, 37});
  for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] = static_cast<float>(i % 113) - 50;
  const auto at = [&](int64_t o, int64_t k) { return o < 17 && k < 37 ? w.data<float>()[o * 37 + k] : 0.0f; };
  const PanelWeight float32 = PanelWeight::lay_out(w, WeightFormat::float32),
                    int8 = PanelWeight::lay_out(w, WeightFormat::int8),
                    int4 = PanelWeight::lay_out(w, WeightFormat::int4),
                    bf16 = PanelWeight::lay_out(w, WeightFormat::bfloat16);
  ASSERT_EQ(bf16.storage().numel(), 2 * 19 * 64);
  ASSERT_EQ(float32.storage().numel(), 2 * 37 * 64);
  ASSERT_EQ(int8.storage().numel(), 2 * (64 + 10 * 64));
  ASSERT_EQ(int4.storage().numel(), 2 * 2 * 256);
  for (int64_t o = 0; o < 32; ++o) {
    const int64_t panel = o / 16, j = o % 16;
    const auto* bytes = int8.storage().data<uint8_t>() + panel * 704;
    int32_t sum = 0;
    for (int64_t k = 0; k < 38; ++k) {
      const auto* numbers = reinterpret_cast<const bfloat16*>(bf16.storage().data<uint8_t>());
      EXPECT_EQ(numbers[((panel * 19 + k / 2) * 16 + j) * 2 + k % 2], at(o, k));
    }
    for (int64_t k = 0; k < 40; ++k) {
      if (k < 37) {
        const auto* floats = reinterpret_cast<const float*>(float32.storage().data<uint8_t>());
        EXPECT_EQ(floats[(panel * 37 + k) * 16 + j], at(o, k));
      }
      const auto q = static_cast<int8_t>(bytes[64 + (k / 4 * 16 + j) * 4 + k % 4]);
      sum += q;
      EXPECT_NEAR(q * int8.scales().data<float>()[o], at(o, k), 0.26);
    }
    EXPECT_EQ(reinterpret_cast<const int32_t*>(bytes)[j], -128 * sum);
    for (int64_t k = 0; k < 64; ++k) {
      const int64_t group = k / 32, i = k % 16;
      const uint8_t both = int4.storage().data<uint8_t>()[((panel * 2 + group) * 4 + i / 4) * 64 + j * 4 + i % 4];
      const int q = (k % 32 < 16 ? both & 15 : both >> 4) - 8;
      EXPECT_NEAR(static_cast<float>(q) * int4.scales().data<bfloat16>()[(panel * 2 + group) * 16 + j], at(o, k), 8);
    }
  }
}

TEST(PanelWeight, SmallAndEmptyRows) {
  Tensor w = Tensor::zeros({3, 40});
  w.data<float>()[40] = 1e-42f;  // too small to have an inverse
  w.data<float>()[80] = 3e38f;
  for (const WeightFormat format : kFormats) {
    const Tensor found = PanelWeight::lay_out(w, format).to_matrix();
    for (int64_t i = 0; i < 120; ++i)
      EXPECT_NEAR(found.data<float>()[i], w.data<float>()[i], i == 80 ? 2e36 : 1e-40) << enum_name(format);
  }
  EXPECT_EQ(PanelWeight::lay_out(Tensor::zeros({0, 4}), WeightFormat::int8).to_matrix().shape(), Shape({0, 4}));
}

TEST(PanelWeight, RefusesPartsThatDoNotFit) {
  const PanelWeight good = PanelWeight::lay_out(matrix(17, 37), WeightFormat::int8);
  EXPECT_NO_THROW(PanelWeight(WeightFormat::int8, 17, 37, good.storage(), good.scales()));
  EXPECT_EQ(message_of<ShapeError>(
                [&] { PanelWeight(WeightFormat::int8, 17, 36, good.storage().rows(0, 64), good.scales()); }),
            "panel weight: [17, 36] in int8 takes uint8 [1280], found uint8 [64]");
  EXPECT_EQ(message_of<ShapeError>([&] { PanelWeight(WeightFormat::int8, 17, 37, good.storage(), {}); }),
            "panel weight: the scales of [17, 37] in int8 are float32 [2, 16], found nothing []");
  EXPECT_THROW(PanelWeight(WeightFormat::int4, 17, 37, good.storage(), good.scales()), ShapeError);
  EXPECT_THROW(PanelWeight(WeightFormat::float32, 17, 37, {}, {}), ShapeError);
  EXPECT_THROW(PanelWeight(WeightFormat::int8, -1, 37, good.storage(), good.scales()), ShapeError);
  EXPECT_THROW(PanelWeight(WeightFormat::int8, int64_t{1} << 60, 37, good.storage(), good.scales()), ShapeError);
  EXPECT_THROW(PanelWeight::storage_bytes(WeightFormat::int4, 16, int64_t{1} << 40), ShapeError);
  const Tensor shifted = Tensor::zeros({good.storage().numel() + 1}, {.dtype = DType::u8});
  EXPECT_THROW(PanelWeight(WeightFormat::int8, 17, 37, shifted.rows(1, shifted.numel()), good.scales()), ShapeError);
  EXPECT_THROW(PanelWeight::lay_out(Tensor::zeros({4}), WeightFormat::int8), ShapeError);
  EXPECT_THROW(PanelWeight::lay_out(normal({4, 4}), WeightFormat::int8), ShapeError);
  EXPECT_THROW(PanelWeight(WeightFormat::int8, 17, 37, good.storage(), good.scales().to(Plain{})), ShapeError);
  EXPECT_THROW(PanelWeight::lay_out(matrix(17, 37).to(Plain{}), WeightFormat::int8, good.storage()), ShapeError);
}

TEST(PanelWeight, OnlySumsOfBytesLimitTheInputs) {
  const Tensor wide = Tensor::full({1, 70000}, 1.0);
  EXPECT_EQ(PanelWeight::lay_out(wide, WeightFormat::float32).in(), 70000);
  EXPECT_EQ(PanelWeight::lay_out(wide, WeightFormat::int4).in(), 70000);
  EXPECT_THROW(PanelWeight::lay_out(wide, WeightFormat::int8), ShapeError);
}

}  // namespace
}  // namespace attune
