#include "attune/nn/positional_encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "attune/base/fail.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/embedding.h"
#include "attune/ops/residual.h"

namespace attune {
namespace {

constexpr double kSinusoidBase = 10000;

}  // namespace

Tensor sinusoidal_positions(int64_t length, int64_t d_model, double base, const SinusoidOptions& options) {
  const int64_t pairs = d_model / 2;
  if (pairs < 1 || d_model % 2 != 0)
    fail<ConfigError>("d_model = {}: sinusoidal positions need an even number", d_model);
  if (options.full_range && pairs < 2)
    fail<ConfigError>("d_model = {}: sinusoidal positions with full_range need at least 4", d_model);
  const int64_t before = options.padding_token >= 0 ? 1 : 0;  // rows of zeros
  std::vector<float> values(static_cast<size_t>((before + length) * d_model));
  // Computes frequencies, exp(-ln(base) i / steps), and angles, position * frequency, in float32, as models trained
  // elsewhere did. In float64 the angles of position 5,000 would differ from theirs by 4e-5.
  const double steps = options.full_range ? static_cast<double>(pairs - 1) : static_cast<double>(pairs);
  const auto decay = static_cast<float>(-std::log(base) / steps);
  const bool halves = options.order == SinusoidOrder::halves;
  for (int64_t i = 0; i < pairs; ++i) {
    const float frequency = std::exp(static_cast<float>(i) * decay);
    const int64_t sine = halves ? i : 2 * i, cosine = halves ? pairs + i : 2 * i + 1;
    for (int64_t row = 0; row < length; ++row) {
      const float angle = static_cast<float>(options.first + row) * frequency;
      values[static_cast<size_t>((before + row) * d_model + sine)] = std::sin(angle);
      values[static_cast<size_t>((before + row) * d_model + cosine)] = std::cos(angle);
    }
  }
  return Tensor::from({before + length, d_model}, values);
}

PositionalEncoding::PositionalEncoding(int64_t d_model, double dropout, const SinusoidOptions& options)
    : d_model_(d_model),
      options_(options),
      dropout_(dropout),
      table_(sinusoidal_positions(0, d_model, kSinusoidBase, options)) {}

Tensor PositionalEncoding::table_for(int64_t rows, const Tensor& x) const {
  const std::lock_guard lock(mutex_);
  if (table_.size(0) < rows) {
    const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 128))));
    table_ = sinusoidal_positions(length, d_model_, kSinusoidBase, options_);
  }
  if (table_.device() != x.device()) table_ = table_.to(x.device());
  return x.dtype() == DType::f32 ? table_ : table_.to(x.dtype());
}

Tensor PositionalEncoding::operator()(const Tensor& x, const Indices& positions) const {
  Indices rows = positions;
  if (options_.padding_token >= 0) {
    std::vector<int32_t> shifted(positions.values().begin(), positions.values().end());
    for (int32_t& row : shifted) ++row;
    rows = std::move(shifted);
  }
  const auto values = rows.values();
  const int64_t most = values.empty() ? 0 : *std::max_element(values.begin(), values.end()) + int64_t{1};
  return add_rows(x, table_for(most, x), rows, dropout_.mask());
}

LearnedPositionalEncoding::LearnedPositionalEncoding(int64_t max_length, int64_t d_model, double dropout)
    : weight_{.tensor = new_parameter({max_length, d_model})}, dropout_(dropout) {}

Tensor LearnedPositionalEncoding::operator()(const Tensor& x, const Indices& positions) const {
  const auto values = positions.values();
  const auto most = std::max_element(values.begin(), values.end());
  if (most != values.end() && *most >= weight_.tensor.size(0))
    fail<DataError>("a sequence of {} tokens is longer than the {} learned positions", *most + int64_t{1},
                    weight_.tensor.size(0));
  return dropout_(residual_dropout(x, embedding(positions, weight_.tensor)));
}

void LearnedPositionalEncoding::visit(Visitor& v) {
  v("weight", weight_);
  v("dropout", dropout_);
}

}  // namespace attune
