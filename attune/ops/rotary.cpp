#include "attune/ops/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/rotary.h"

namespace attune {
namespace {

void check(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  options.validate();
  if (!x.defined() || x.rank() != 3)
    fail<ShapeError>("rotary: needs x as [rows, heads, d], found {}", x.defined() ? x.shape().text() : "nothing");
  if (!positions.defined() || positions.rank() != 1 || positions.dtype() != DType::i32)
    fail<ShapeError>("rotary: the positions need one dimension of int32, found {} {}",
                     positions.defined() ? name_of(positions.dtype()) : "nothing", positions.shape().text());
  if (positions.size(0) != x.size(0))
    fail<ShapeError>("rotary: x {} has {} rows but there are {} positions", x.shape().text(), x.size(0),
                     positions.size(0));
  if (options.dimensions == 0 && x.size(2) % 2 != 0)
    fail<ShapeError>("rotary: x {} has d = {}, pairs need an even number", x.shape().text(), x.size(2));
  if (options.dimensions > x.size(2))
    fail<ShapeError>("rotary: x {} has d = {}, fewer than dimensions = {}", x.shape().text(), x.size(2),
                     options.dimensions);
}

// What forward and backward share: the angles of every place that occurs.
struct Rotations {
  Tensor table;  // [places, 2, pairs]
  Tensor rows;   // int32 [n], of the table
};

// Sequences begin at the same places, so a place is worked out once for all rows that are there: for the whole range
// between the first and the last place, unless that is more places than there are rows.
Rotations rotations_of(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  const int64_t n = positions.size(0), rotated = options.dimensions == 0 ? x.size(2) : options.dimensions;
  const auto places = positions.values<int32_t>();
  const auto [least, most] = std::minmax_element(places.begin(), places.end());
  const int64_t first = n == 0 ? 0 : *least, range = n == 0 ? 0 : *most - first + 1;
  const bool shared = range <= n;
  Rotations rotations{.table = Tensor::empty({shared ? range : n, 2, rotated / 2}, {x.dtype(), x.device()}),
                      .rows = Tensor::empty({n}, {DType::i32, x.device()})};
  const auto rows = rotations.rows.values<int32_t>();
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int32_t>(shared ? places[i] - first : static_cast<int64_t>(i));
  const RotaryFrequencies frequencies = rotary_frequencies(options, rotated);
  dispatch_floating("rotary", x.dtype(), [&]<class T>(T) {
    dispatch(x.device(), [&](auto device) {
      rotary_table(device, RotaryTable<T>{.frequencies = frequencies,
                                          .positions = shared ? nullptr : places.data(),
                                          .first = first,
                                          .rows = rotations.table.size(0),
                                          .table = rotations.table.data<T>()});
    });
  });
  return rotations;
}

Tensor rotated(const Tensor& x, const Rotations& rotations, RotaryPairing pairing, int64_t heads, bool back) {
  Tensor y = Tensor::empty_like(x);
  dispatch_floating("rotary", x.dtype(), [&]<class T>(T) {
    dispatch(x.device(), [&](auto device) {
      rotary_rows(device, RotaryRows<T>{.x = x.data<T>(),
                                        .table = rotations.table.data<T>(),
                                        .table_rows = rotations.rows.data<int32_t>(),
                                        .n = x.size(0),
                                        .heads = x.size(1),
                                        .rotated = heads,
                                        .d = x.size(2),
                                        .pairs = rotations.table.size(2),
                                        .pairing = pairing,
                                        .back = back,
                                        .y = y.data<T>()});
    });
  });
  return y;
}

// The ramp of YaRN's section 3.2: 0 where a pair is scaled like linear, 1 where it stays as it is.
double yarn_ramp(const RotaryOptions& options, double frequency) {
  const double turns = static_cast<double>(options.original_length) * frequency / (2 * std::numbers::pi);
  return std::clamp((turns - options.beta_slow) / (options.beta_fast - options.beta_slow), 0.0, 1.0);
}

}  // namespace

void RotaryOptions::validate() const {
  if (!(base >= 1 && std::isfinite(base))) fail<ConfigError>("base = {}: needs a finite number of at least 1", base);
  if (dimensions < 0 || dimensions % 2 != 0)
    fail<ConfigError>("dimensions = {}: needs an even number, or 0 for all", dimensions);
  if (scaling == RotaryScaling::none) return;
  if (!(factor >= 1 && std::isfinite(factor)))
    fail<ConfigError>("factor = {}: needs a finite number of at least 1", factor);
  if (scaling != RotaryScaling::yarn) return;
  if (original_length < 1)
    fail<ConfigError>("original_length = {}: yarn needs the context that was trained with", original_length);
  if (!(beta_slow >= 0 && std::isfinite(beta_slow)))
    fail<ConfigError>("beta_slow = {}: needs a finite number of at least 0", beta_slow);
  if (!(beta_fast > beta_slow && std::isfinite(beta_fast)))
    fail<ConfigError>("beta_fast = {}: needs a finite number above beta_slow = {}", beta_fast, beta_slow);
}

RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t dimensions) {
  options.validate();
  if (dimensions < 0 || dimensions % 2 != 0) fail<ConfigError>("dimensions = {}: needs an even number", dimensions);
  RotaryFrequencies result;
  for (int64_t i = 0; i < dimensions; i += 2) {
    const double frequency = std::pow(options.base, -static_cast<double>(i) / static_cast<double>(dimensions));
    const double kept = options.scaling == RotaryScaling::none     ? 1
                        : options.scaling == RotaryScaling::linear ? 0
                                                                   : yarn_ramp(options, frequency);
    result.frequencies.push_back(kept == 1 ? frequency : (kept + (1 - kept) / options.factor) * frequency);
  }
  if (options.scaling == RotaryScaling::yarn) result.magnitude = 0.1 * std::log(options.factor) + 1;
  return result;
}

Tensor rotary(const Tensor& x, const Tensor& positions, const RotaryOptions& options, std::optional<int64_t> heads) {
  const ProfileScope scope("rotary");
  check(x, positions, options);
  const int64_t count = heads.value_or(x.size(1));
  if (count < 0 || count > x.size(1))
    fail<ShapeError>("rotary: x {} has {} heads, {} are to be rotated", x.shape().text(), x.size(1), count);
  Rotations rotations = rotations_of(x, positions, options);
  Tensor y = rotated(x, rotations, options.pairing, count, false);
  // A rotation is orthogonal up to its magnitude, so that the gradient is rotated back.
  record("rotary", {x}, y, [rotations = std::move(rotations), pairing = options.pairing, count](const Tensor& dy) {
    return Gradients{rotated(dy, rotations, pairing, count, true)};
  });
  return y;
}

}  // namespace attune
