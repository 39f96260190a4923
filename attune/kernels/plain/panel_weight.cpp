#include "attune/kernels/gemm/panel_weight.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/quantise.h"
#include "attune/kernels/plain/panel_reader.h"

namespace attune {
namespace {

void lay_out_float32(const float* weight, const Panels& to) {
  auto* const numbers = reinterpret_cast<float*>(to.storage.data<uint8_t>());
  for (int64_t o = 0; o < panel_count(to.out) * kPanelOutputs; ++o)
    for (int64_t k = 0; k < to.in; ++k)
      numbers[(o / kPanelOutputs * to.in + k) * kPanelOutputs + o % kPanelOutputs] =
          o < to.out ? weight[o * to.in + k] : 0;
}

void lay_out_bfloat16(const float* weight, const Panels& to) {
  std::memset(to.storage.raw(), 0, to.storage.bytes());
  for (int64_t o = 0; o < to.out; ++o) {
    auto* const panel =
        reinterpret_cast<bfloat16*>(to.storage.data<uint8_t>() + o / kPanelOutputs * panel_bytes(to.format, to.in));
    for (int64_t k = 0; k < to.in; ++k) panel[bfloat16_place(k, o % kPanelOutputs)] = bfloat16(weight[o * to.in + k]);
  }
}

void lay_out_int8(const float* weight, const Panels& to) {
  std::memset(to.storage.raw(), 0, to.storage.bytes());
  std::memset(to.scales.raw(), 0, to.scales.bytes());
  std::vector<int8_t> numbers(static_cast<size_t>(to.in));
  for (int64_t o = 0; o < to.out; ++o) {
    const int64_t j = o % kPanelOutputs;
    uint8_t* const panel = to.storage.data<uint8_t>() + o / kPanelOutputs * panel_bytes(to.format, to.in);
    to.scales.data<float>()[o] = quantise_output({weight + o * to.in, static_cast<size_t>(to.in)}, numbers);
    int32_t sum = 0;
    for (int64_t k = 0; k < to.in; ++k) {
      const int8_t q = numbers[static_cast<size_t>(k)];
      panel[kPanelRow + int8_place(k, j)] = static_cast<uint8_t>(q);
      sum -= 128 * q;
    }
    reinterpret_cast<int32_t*>(panel)[j] = sum;
  }
}

void lay_out_int4(const float* weight, const Panels& to) {
  const int64_t groups = divide_up(to.in, kGroupInputs);
  for (int64_t o = 0; o < panel_count(to.out) * kPanelOutputs; ++o) {
    const int64_t panel = o / kPanelOutputs, j = o % kPanelOutputs;
    for (int64_t g = 0; g < groups; ++g) {
      std::vector<float> inputs(kGroupInputs);  // zeros beyond the weight
      for (int64_t k = g * kGroupInputs; o < to.out && k < std::min(to.in, (g + 1) * kGroupInputs); ++k)
        inputs[static_cast<size_t>(k % kGroupInputs)] = weight[o * to.in + k];
      const QuantisedGroup group = quantise_group(inputs);
      to.scales.data<bfloat16>()[(panel * groups + g) * kPanelOutputs + j] = group.scale;
      uint8_t* const bytes = to.storage.data<uint8_t>() + (panel * groups + g) * kGroupBytes;
      for (size_t k = 0; k < kGroupInputs / 2; ++k)
        bytes[int8_place(static_cast<int64_t>(k), j)] =
            static_cast<uint8_t>(group.numbers[k] | group.numbers[k + kGroupInputs / 2] << 4);
    }
  }
}

}  // namespace

void lay_out_panels(Plain, const Tensor& weight, const Panels& to) {
  std::vector<float> numbers(static_cast<size_t>(weight.numel()));
  if (weight.dtype() == DType::bf16) {
    std::copy_n(weight.data<bfloat16>(), weight.numel(), numbers.begin());
  } else {
    std::copy_n(weight.data<float>(), weight.numel(), numbers.begin());
  }
  switch (to.format) {
    case WeightFormat::float32:
      return lay_out_float32(numbers.data(), to);
    case WeightFormat::bfloat16:
      return lay_out_bfloat16(numbers.data(), to);
    case WeightFormat::int8:
      return lay_out_int8(numbers.data(), to);
    case WeightFormat::int4:
      return lay_out_int4(numbers.data(), to);
  }
}

void read_panel_rows(Plain, const Panels& from, const Tensor& ids, const Tensor& to) {
  const plain::PanelReader weight(from);
  const int32_t* const rows = data_or_null<int32_t>(ids);
  for (int64_t i = 0; i < to.size(0); ++i)
    for (int64_t k = 0; k < from.in; ++k)
      to.data<float>()[i * from.in + k] = weight.value(rows != nullptr ? rows[i] : i, k);
}

}  // namespace attune
