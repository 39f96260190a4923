#include "attune/kernels/gemm/panel_weight.h"

#include <cmath>

#include "attune/kernels/cuda/gemm/panel_reader.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

// The arithmetic of quantisation is that of attune/kernels/gemm/quantise.cpp, step by step.

namespace attune {
namespace {

// An element is an input of an output; outputs go on to the end of the last panel.
template <class T>
struct LayOutNumbers {
  const T* weight;
  cuda::PanelReader to;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t o = i / to.in, k = i % to.in, j = o % kPanelOutputs;
    const float value = o < to.out ? static_cast<float>(weight[o * to.in + k]) : 0.0f;
    if (to.format == WeightFormat::float32) {
      reinterpret_cast<float*>(to.panel_of(o))[k * kPanelOutputs + j] = value;
    } else {
      reinterpret_cast<bfloat16*>(to.panel_of(o))[bfloat16_place(k, j)] = bfloat16(value);
    }
  }
};

ATTUNE_DEVICE float clamped(float value, float least, float most) {
  return value < least ? least : value > most ? most : value;
}

// An element is an output.
template <class T>
struct LayOutInt8 {
  const T* weight;
  cuda::PanelReader to;
  float* scales;
  ATTUNE_DEVICE void operator()(int64_t o) const {
    const T* const row = weight + o * to.in;
    uint8_t* const panel = to.panel_of(o);
    const int64_t j = o % kPanelOutputs;
    float largest = 0;
    for (int64_t k = 0; k < to.in; ++k) {
      const float magnitude = std::fabs(static_cast<float>(row[k]));
      if (largest < magnitude) largest = magnitude;
    }
    const float scale = largest / 127, inverse = scale < cuda::kLeastNormal ? 0.0f : 127 / largest;
    int32_t sum = 0;
    for (int64_t k = 0; k < to.in; ++k) {
      const auto q = static_cast<int32_t>(
          clamped(std::nearbyint(cuda::rounded_product(static_cast<float>(row[k]), inverse)), -127.0f, 127.0f));
      panel[kPanelRow + int8_place(k, j)] = static_cast<uint8_t>(q);
      sum -= 128 * q;
    }
    reinterpret_cast<int32_t*>(panel)[j] = sum;
    scales[o] = scale;
  }
};

// An element is a group of an output; outputs go on to the end of the last panel.
template <class T>
struct LayOutInt4 {
  const T* weight;
  cuda::PanelReader to;
  bfloat16* scales;

  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t groups = divide_up(to.in, kGroupInputs), o = i / groups, group = i % groups, j = o % kPanelOutputs;
    float values[kGroupInputs];
    float largest = 0;
    for (int64_t k = 0; k < kGroupInputs; ++k) {
      const int64_t input = group * kGroupInputs + k;
      values[k] = o < to.out && input < to.in ? static_cast<float>(weight[o * to.in + input]) : 0.0f;
      if (std::fabs(values[k]) > std::fabs(largest)) largest = values[k];
    }
    const float steps[] = {8.0f, 7.75f, 7.5f, 7.25f, 7.0f, 8.25f, 8.5f, 9.0f, -7.0f, -7.25f, -7.5f, -7.75f};
    bfloat16 best{0.0f};
    float least = 3.402823466e+38f;
    for (const float step : steps) {
      const bfloat16 scale{-largest / step};
      if (const float found = error(values, scale, largest); found < least) {
        least = found;
        best = scale;
      }
    }
    scales[(o / kPanelOutputs * groups + group) * kPanelOutputs + j] = best;
    uint8_t* const bytes = to.panel_of(o) + group * kGroupBytes;
    const float inverse = inverse_of(best);
    for (int64_t k = 0; k < kGroupInputs / 2; ++k)
      bytes[int8_place(k, j)] = static_cast<uint8_t>(static_cast<int32_t>(rounded(values[k], inverse) + 8) |
                                                     static_cast<int32_t>(rounded(values[k + 16], inverse) + 8) << 4);
  }

  ATTUNE_DEVICE static float inverse_of(float scale) {
    return std::fabs(scale) < cuda::kLeastNormal ? 0.0f : 1 / scale;
  }
  ATTUNE_DEVICE static float rounded(float value, float inverse) {
    return clamped(std::nearbyint(cuda::rounded_product(value, inverse)), -8.0f, 7.0f);
  }
  ATTUNE_DEVICE static float error(const float* values, float scale, float largest) {
    const float inverse = inverse_of(scale), step = scale / largest;
    float sum = 0;
    for (int64_t k = 0; k < kGroupInputs; ++k) {
      const float difference = values[k] / largest - cuda::rounded_product(rounded(values[k], inverse), step);
      sum += cuda::rounded_product(difference, difference);
    }
    return sum;
  }
};

struct ReadPanelRows {
  cuda::PanelReader from;
  const int32_t* ids;  // or null: all rows
  float* to;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / from.in;
    to[i] = from.value(ids != nullptr ? ids[row] : row, i % from.in);
  }
};

}  // namespace

void lay_out_panels(Cuda device, const Tensor& weight, const Panels& to) {
  const int64_t outputs = panel_count(to.out) * kPanelOutputs;
  const cuda::PanelReader panels(to);
  cuda::clear(device, to.storage.raw(), to.storage.bytes());
  if (to.scales.defined()) cuda::clear(device, to.scales.raw(), to.scales.bytes());
  const auto lay_out = [&]<class T>(const T* numbers) {
    switch (to.format) {
      case WeightFormat::float32:
      case WeightFormat::bfloat16:
        return cuda::for_each_element(device, "lay_out_panels", outputs * to.in, LayOutNumbers<T>{numbers, panels});
      case WeightFormat::int8:
        return cuda::for_each_element(device, "lay_out_panels", to.out,
                                      LayOutInt8<T>{numbers, panels, to.scales.data<float>()});
      case WeightFormat::int4:
        return cuda::for_each_element(device, "lay_out_panels", outputs * divide_up(to.in, kGroupInputs),
                                      LayOutInt4<T>{numbers, panels, to.scales.data<bfloat16>()});
    }
  };
  weight.dtype() == DType::bf16 ? lay_out(weight.data<bfloat16>()) : lay_out(weight.data<float>());
}

void read_panel_rows(Cuda device, const Panels& from, const Tensor& ids, const Tensor& to) {
  cuda::for_each_element(device, "read_panel_rows", to.numel(),
                         ReadPanelRows{cuda::PanelReader(from), data_or_null<int32_t>(ids), to.data<float>()});
}

}  // namespace attune
