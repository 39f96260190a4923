#include <algorithm>
#include <cmath>
#include <vector>

#include "attune/base/parallel.h"
#include "attune/ops/activation_kernel.h"
#include "attune/ops/packed_linear_kernel.h"

namespace attune {
namespace {

ActivationKind kind_of(FusedActivation activation) {
  switch (activation) {
    case FusedActivation::gelu:
      return ActivationKind::gelu;
    case FusedActivation::gelu_tanh:
      return ActivationKind::gelu_tanh;
    case FusedActivation::silu:
      return ActivationKind::silu;
    case FusedActivation::tanh:
      return ActivationKind::tanh;
    case FusedActivation::none:
    case FusedActivation::relu:
      break;
  }
  return ActivationKind::relu;
}

// x as products with weights in a format read it.
std::vector<float> rounded(WeightFormat format, const float* x, int64_t rows, int64_t in) {
  std::vector<float> result(x, x + rows * in);
  if (format == WeightFormat::float32) return result;
  const int64_t length = format == WeightFormat::int8 ? in : kGroupInputs;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < in; begin += length) {
      float* const piece = result.data() + r * in + begin;
      const int64_t count = std::min(length, in - begin);
      float largest = 0;
      for (int64_t k = 0; k < count; ++k) largest = std::max(largest, std::abs(piece[k]));
      const float scale = largest / 127;
      for (int64_t k = 0; k < count && scale > 0; ++k) piece[k] = std::nearbyint(piece[k] * (127 / largest)) * scale;
    }
  }
  return result;
}

}  // namespace

void packed_linear(Cpu, const PackedProduct& p) {
  const std::vector<float> x = rounded(p.parts[0].weight.format, p.x, p.rows, p.in);
  for (const PackedPart& part : p.parts) {
    parallel_for(part.weight.out, 64, [&](int64_t begin, int64_t end) {
      std::vector<float> w(static_cast<size_t>(p.in));
      for (int64_t o = begin; o < end; ++o) {
        unpack_row(Cpu{}, part.weight, o, w.data());
        for (int64_t r = 0; r < p.rows; ++r) {
          float sum = part.bias != nullptr ? part.bias[o] : 0.0f;
          for (int64_t k = 0; k < p.in; ++k) sum += x[static_cast<size_t>(r * p.in + k)] * w[static_cast<size_t>(k)];
          p.y[r * p.width + part.column + o] = sum;
        }
      }
    });
  }
  if (p.activation != FusedActivation::none)
    activation_forward(Cpu{}, kind_of(p.activation), p.y, p.y, p.rows * p.width);
}

void packed_linear_columns(Cpu, const PackedColumns& p) {
  const std::vector<float> x = rounded(p.weight.format, p.x, p.rows, p.in);
  parallel_for(static_cast<int64_t>(p.columns.size()), 64, [&](int64_t begin, int64_t end) {
    std::vector<float> w(static_cast<size_t>(p.in));
    for (int64_t j = begin; j < end; ++j) {
      const int64_t o = p.columns[static_cast<size_t>(j)];
      unpack_row(Cpu{}, p.weight, o, w.data());
      for (int64_t r = 0; r < p.rows; ++r) {
        float sum = p.bias != nullptr ? p.bias[o] : 0.0f;
        for (int64_t k = 0; k < p.in; ++k) sum += x[static_cast<size_t>(r * p.in + k)] * w[static_cast<size_t>(k)];
        p.y[r * p.width + j] = sum;
      }
    }
  });
}

}  // namespace attune
