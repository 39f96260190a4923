#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "attune/kernels/panel_weight.h"

namespace attune {
namespace {

void pack_float32(const float* weight, const MutablePanels& to, int64_t panel) {
  const int64_t first = panel * kPanelOutputs, outputs = std::min(kPanelOutputs, to.out - first);
  std::vector<float> zeros(outputs < kPanelOutputs ? static_cast<size_t>(to.in) : 0);
  std::array<const float*, kPanelOutputs> rows;
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    rows[static_cast<size_t>(j)] = j < outputs ? weight + (first + j) * to.in : zeros.data();
  pack_float_panel(Cpu{}, rows.data(), to.in, reinterpret_cast<float*>(to.panel(panel)));
}

// The place of an input in an int8 panel behind its sums, and of an output within.
int64_t int8_place(int64_t k, int64_t j) {
  return k / 4 * kPanelRow + j * 4 + k % 4;
}

void pack_int8(const float* weight, const MutablePanels& to, int64_t panel) {
  std::byte* const begin = to.panel(panel);
  std::memset(begin, 0, static_cast<size_t>(panel_bytes(to.format, to.in)));
  auto* const sums = reinterpret_cast<int32_t*>(begin);
  auto* const numbers = reinterpret_cast<int8_t*>(begin + kPanelRow);
  auto* const scales = reinterpret_cast<float*>(to.scales_of(panel));
  const int64_t first = panel * kPanelOutputs, outputs = std::min(kPanelOutputs, to.out - first);
  std::fill_n(scales, kPanelOutputs, 0.0f);
  for (int64_t j = 0; j < outputs; ++j) {
    const float* row = weight + (first + j) * to.in;
    float largest = 0;
    for (int64_t k = 0; k < to.in; ++k) largest = std::max(largest, std::abs(row[k]));
    scales[j] = largest / 127;
    const float inverse = scales[j] < std::numeric_limits<float>::min() ? 0.0f : 127 / largest;
    for (int64_t k = 0; k < to.in; ++k) {
      const auto q = static_cast<int8_t>(std::clamp(std::nearbyint(row[k] * inverse), -127.0f, 127.0f));
      numbers[int8_place(k, j)] = q;
      sums[j] -= 128 * q;
    }
  }
}

struct Group {
  std::array<float, kGroupInputs> values;
  std::array<uint8_t, kGroupInputs> numbers;  // q + 8
};

// The numbers for a scale, and their squared error in units of `largest`.
float quantise(Group& group, float scale, float largest) {
  const float inverse = std::abs(scale) < std::numeric_limits<float>::min() ? 0.0f : 1 / scale;
  float error = 0;
  for (size_t i = 0; i < group.values.size(); ++i) {
    const float q = std::clamp(std::nearbyint(group.values[i] * inverse), -8.0f, 7.0f);
    const float difference = group.values[i] / largest - q * (scale / largest);
    group.numbers[i] = static_cast<uint8_t>(q + 8);
    error += difference * difference;
  }
  return error;
}

// -8 reaches one number further than 7: the largest number goes there, or a little beyond the end, which may be worth
// it for all the others.
bfloat16 quantise(Group& group) {
  float largest = 0;
  for (const float value : group.values)
    if (std::abs(value) > std::abs(largest)) largest = value;
  bfloat16 best{0.0f};
  float least = std::numeric_limits<float>::max();
  for (const float steps : {8.0f, 7.75f, 7.5f, 7.25f, 7.0f, 8.25f, 8.5f, 9.0f, -7.0f, -7.25f, -7.5f, -7.75f}) {
    const bfloat16 scale{-largest / steps};
    if (const float error = quantise(group, scale, largest); error < least) {
      least = error;
      best = scale;
    }
  }
  quantise(group, best, 1);
  return best;
}

void pack_int4(const float* weight, const MutablePanels& to, int64_t panel) {
  const int64_t groups = divide_up(to.in, kGroupInputs);
  auto* const numbers = reinterpret_cast<uint8_t*>(to.panel(panel));
  auto* const scales = reinterpret_cast<bfloat16*>(to.scales_of(panel));
  const int64_t first = panel * kPanelOutputs;
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < kPanelOutputs; ++j) {
      Group group{};
      const int64_t begin = g * kGroupInputs, count = std::min(kGroupInputs, to.in - begin);
      if (first + j < to.out) std::copy_n(weight + (first + j) * to.in + begin, count, group.values.begin());
      scales[g * kPanelOutputs + j] = quantise(group);
      for (int64_t k = 0; k < kGroupInputs / 2; ++k) {
        const uint8_t low = group.numbers[static_cast<size_t>(k)], high = group.numbers[static_cast<size_t>(k) + 16];
        numbers[g * kGroupBytes + int8_place(k, j)] = static_cast<uint8_t>(low | high << 4);
      }
    }
  }
}

// Column ids[i] of `from`, rows of panels of 16 numbers, becomes column i of `to`.
template <class T>
void select_columns(int64_t out, std::span<const int32_t> ids, int64_t bytes, const std::byte* source,
                    std::byte* target) {
  const int64_t lines = bytes / (kPanelOutputs * static_cast<int64_t>(sizeof(T)));
  for (int64_t i = 0; i < panel_count(out) * kPanelOutputs; ++i) {
    T* const column = reinterpret_cast<T*>(target + i / kPanelOutputs * bytes) + i % kPanelOutputs;
    if (i >= out) {
      for (int64_t line = 0; line < lines; ++line) column[line * kPanelOutputs] = T{};
      continue;
    }
    const int64_t id = ids[static_cast<size_t>(i)];
    const T* const other = reinterpret_cast<const T*>(source + id / kPanelOutputs * bytes) + id % kPanelOutputs;
    for (int64_t line = 0; line < lines; ++line) column[line * kPanelOutputs] = other[line * kPanelOutputs];
  }
}

}  // namespace

void select_outputs(Cpu, const Panels& from, std::span<const int32_t> ids, const MutablePanels& to) {
  // Whatever the format, each line of a panel has 32 bits of each of its outputs.
  select_columns<uint32_t>(to.out, ids, panel_bytes(from.format, from.in), from.data, to.data);
  const int64_t scales = scale_bytes(from.format, from.in);
  if (from.format == WeightFormat::int8) select_columns<float>(to.out, ids, scales, from.scales, to.scales);
  if (from.format == WeightFormat::int4) select_columns<bfloat16>(to.out, ids, scales, from.scales, to.scales);
}

void pack_panels(Cpu, const float* weight, const MutablePanels& to, int64_t begin, int64_t end) {
  for (int64_t panel = begin; panel < end; ++panel) {
    switch (to.format) {
      case WeightFormat::float32:
        pack_float32(weight, to, panel);
        break;
      case WeightFormat::int8:
        pack_int8(weight, to, panel);
        break;
      case WeightFormat::int4:
        pack_int4(weight, to, panel);
        break;
    }
  }
}

void unpack_row(Cpu, const Panels& from, int64_t row, float* to) {
  const int64_t panel = row / kPanelOutputs, j = row % kPanelOutputs;
  const std::byte* const data = from.panel(panel);
  switch (from.format) {
    case WeightFormat::float32: {
      const auto* values = reinterpret_cast<const float*>(data);
      for (int64_t k = 0; k < from.in; ++k) to[k] = values[k * kPanelOutputs + j];
      break;
    }
    case WeightFormat::int8: {
      const auto* numbers = reinterpret_cast<const int8_t*>(data + kPanelRow);
      const float scale = reinterpret_cast<const float*>(from.scales_of(panel))[j];
      for (int64_t k = 0; k < from.in; ++k) to[k] = scale * numbers[int8_place(k, j)];
      break;
    }
    case WeightFormat::int4: {
      const auto* numbers = reinterpret_cast<const uint8_t*>(data);
      const auto* scales = reinterpret_cast<const bfloat16*>(from.scales_of(panel)) + j;
      for (int64_t k = 0; k < from.in; ++k) {
        const int64_t group = k / kGroupInputs, within = k % kGroupInputs;
        const uint8_t both = numbers[group * kGroupBytes + int8_place(within % 16, j)];
        const int q = within < 16 ? both & 15 : both >> 4;
        to[k] = scales[group * kPanelOutputs] * static_cast<float>(q - 8);
      }
      break;
    }
  }
}

}  // namespace attune
