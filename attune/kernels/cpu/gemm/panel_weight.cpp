#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/gemm/panel_data.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/panel_weight.h"
#include "attune/kernels/gemm/quantise.h"

namespace attune {
namespace {

using cpu::MutablePanelData;
using cpu::PanelData;

// The functions lay_out_...() take the rows of one panel, as many as the panel has outputs.

int64_t outputs_of(const MutablePanelData& to, int64_t panel) {
  return std::min(kPanelOutputs, to.out - panel * kPanelOutputs);
}

void lay_out_float32(const float* weight, const MutablePanelData& to, int64_t panel) {
  const int64_t outputs = outputs_of(to, panel);
  std::vector<float> zeros(outputs < kPanelOutputs ? static_cast<size_t>(to.in) : 0);
  std::array<const float*, kPanelOutputs> rows;
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    rows[static_cast<size_t>(j)] = j < outputs ? weight + j * to.in : zeros.data();
  cpu::lay_out_float_panel(rows.data(), to.in, reinterpret_cast<float*>(to.panel(panel)));
}

void lay_out_bfloat16(const bfloat16* weight, const MutablePanelData& to, int64_t panel) {
  const int64_t outputs = outputs_of(to, panel);
  if (outputs == kPanelOutputs && to.in % 2 == 0 && reinterpret_cast<uintptr_t>(weight) % alignof(float) == 0) {
    // Two inputs of an output are 32 bits, which move as those of a float do.
    std::array<const float*, kPanelOutputs> rows;
    for (int64_t j = 0; j < kPanelOutputs; ++j)
      rows[static_cast<size_t>(j)] = reinterpret_cast<const float*>(weight + j * to.in);
    return cpu::lay_out_float_panel(rows.data(), to.in / 2, reinterpret_cast<float*>(to.panel(panel)));
  }
  auto* const numbers = reinterpret_cast<bfloat16*>(to.panel(panel));
  std::memset(to.panel(panel), 0, static_cast<size_t>(panel_bytes(to.format, to.in)));
  for (int64_t j = 0; j < outputs; ++j)
    for (int64_t k = 0; k < to.in; ++k) numbers[bfloat16_place(k, j)] = weight[j * to.in + k];
}

void lay_out_int8(const float* weight, const MutablePanelData& to, int64_t panel) {
  std::byte* const begin = to.panel(panel);
  std::memset(begin, 0, static_cast<size_t>(panel_bytes(to.format, to.in)));
  auto* const sums = reinterpret_cast<int32_t*>(begin);
  auto* const numbers = reinterpret_cast<int8_t*>(begin + kPanelRow);
  auto* const scales = reinterpret_cast<float*>(to.scales_of(panel));
  const int64_t outputs = outputs_of(to, panel);
  std::fill_n(scales, kPanelOutputs, 0.0f);
  std::vector<int8_t> of_output(static_cast<size_t>(to.in));
  for (int64_t j = 0; j < outputs; ++j) {
    scales[j] = quantise_output({weight + j * to.in, static_cast<size_t>(to.in)}, of_output);
    for (int64_t k = 0; k < to.in; ++k) {
      const int8_t q = of_output[static_cast<size_t>(k)];
      numbers[int8_place(k, j)] = q;
      sums[j] -= 128 * q;
    }
  }
}

void lay_out_int4(const float* weight, const MutablePanelData& to, int64_t panel) {
  const int64_t groups = divide_up(to.in, kGroupInputs);
  auto* const numbers = reinterpret_cast<uint8_t*>(to.panel(panel));
  auto* const scales = reinterpret_cast<bfloat16*>(to.scales_of(panel));
  const int64_t outputs = outputs_of(to, panel);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t j = 0; j < kPanelOutputs; ++j) {
      std::span<const float> inputs;  // empty beyond the last output
      if (j < outputs) {
        const int64_t begin = g * kGroupInputs, count = std::min(kGroupInputs, to.in - begin);
        inputs = {weight + j * to.in + begin, static_cast<size_t>(count)};
      }
      const QuantisedGroup group = quantise_group(inputs);
      scales[g * kPanelOutputs + j] = group.scale;
      for (int64_t k = 0; k < kGroupInputs / 2; ++k) {
        const uint8_t low = group.numbers[static_cast<size_t>(k)], high = group.numbers[static_cast<size_t>(k) + 16];
        numbers[g * kGroupBytes + int8_place(k, j)] = static_cast<uint8_t>(low | high << 4);
      }
    }
  }
}

// `from` and `to` are panels with rows of 16 numbers. Copies column ids[i] of `from` to column i of `to`.
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

void lay_out_panel(const float* weight, const MutablePanelData& to, int64_t panel) {
  switch (to.format) {
    case WeightFormat::float32:
      return lay_out_float32(weight, to, panel);
    case WeightFormat::bfloat16:
      return lay_out_bfloat16(std::vector<bfloat16>(weight, weight + outputs_of(to, panel) * to.in).data(), to, panel);
    case WeightFormat::int8:
      return lay_out_int8(weight, to, panel);
    case WeightFormat::int4:
      return lay_out_int4(weight, to, panel);
  }
}

void lay_out_panel(const bfloat16* weight, const MutablePanelData& to, int64_t panel) {
  lay_out_bfloat16(weight, to, panel);
}

void read_panel_row(const PanelData& from, int64_t row, float* to) {
  const int64_t panel = row / kPanelOutputs, j = row % kPanelOutputs;
  const std::byte* const data = from.panel(panel);
  switch (from.format) {
    case WeightFormat::float32: {
      const auto* values = reinterpret_cast<const float*>(data);
      for (int64_t k = 0; k < from.in; ++k) to[k] = values[k * kPanelOutputs + j];
      break;
    }
    case WeightFormat::bfloat16: {
      const auto* numbers = reinterpret_cast<const bfloat16*>(data);
      for (int64_t k = 0; k < from.in; ++k) to[k] = numbers[bfloat16_place(k, j)];
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

}  // namespace

void cpu::select_outputs(const PanelData& from, std::span<const int32_t> ids, const MutablePanelData& to) {
  // In every format a row of a panel has 32 bits of each of its outputs.
  select_columns<uint32_t>(to.out, ids, panel_bytes(from.format, from.in), from.data, to.data);
  const int64_t scales = scale_bytes(from.format, from.in);
  if (from.format == WeightFormat::int8) select_columns<float>(to.out, ids, scales, from.scales, to.scales);
  if (from.format == WeightFormat::int4) select_columns<bfloat16>(to.out, ids, scales, from.scales, to.scales);
}

void lay_out_panels(Cpu, const Tensor& weight, const Panels& to) {
  const MutablePanelData panels = cpu::mutable_data_of(to);
  const int64_t numbers = to.in * kPanelOutputs, grain = std::max<int64_t>(1, (int64_t{1} << 16) / numbers);
  const auto lay_out = [&](const auto* from) {
    parallel_for(panel_count(to.out), grain, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) lay_out_panel(from + panel * numbers, panels, panel);
    });
  };
  weight.dtype() == DType::bf16 ? lay_out(weight.data<bfloat16>()) : lay_out(weight.data<float>());
}

void read_panel_rows(Cpu, const Panels& from, const Tensor& ids, const Tensor& to) {
  const PanelData panels = cpu::data_of(from);
  const int32_t* const rows = data_or_null<int32_t>(ids);
  float* const values = to.data<float>();
  parallel_for(to.size(0), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) read_panel_row(panels, rows != nullptr ? rows[i] : i, values + i * from.in);
  });
}

}  // namespace attune
