#include "attune/ops/attention/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/attention/rotary.h"
#include "attune/ops/rows.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check(const Tensor& x, const Indices& positions, const RotaryOptions& options) {
  options.validate();
  if (!x.defined() || x.rank() != 3)
    fail<ShapeError>("rotary: needs x as [rows, heads, d], found {}", x.defined() ? x.shape().text() : "nothing");
  check_rows("rotary", x);
  if (positions.size() != x.size(0))
    fail<ShapeError>("rotary: x {} has {} rows but there are {} positions", x.shape().text(), x.size(0),
                     positions.size());
  if (options.dimensions == 0 && x.size(2) % 2 != 0)
    fail<ShapeError>("rotary: x {} has d = {}, pairs need an even number", x.shape().text(), x.size(2));
  if (options.dimensions > x.size(2))
    fail<ShapeError>("rotary: x {} has d = {}, fewer than dimensions = {}", x.shape().text(), x.size(2),
                     options.dimensions);
}

// What forward and backward share: the table of angles, and the row of the table for each row of x.
struct Rotations {
  Tensor table;       // [positions, 2, pairs]
  Indices positions;  // of the rows of the table; empty: first, first + 1, ...
  int64_t first = 0;
  Indices rows;  // of the table: one for each row of x
};

// Sequences begin at the same positions, so the angles of a position are computed once for all rows: for the whole
// range from the first to the last position, unless it has more positions than there are rows.
Rotations rotations_of(const Tensor& x, const Indices& positions, int64_t pairs) {
  const int64_t n = positions.size();
  const std::span<const int32_t> values = positions.values();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const int64_t first = n == 0 ? 0 : *least, range = n == 0 ? 0 : *most - first + 1;
  const bool shared = range <= n;
  std::vector<int32_t> rows(static_cast<size_t>(n));
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int32_t>(shared ? values[i] - first : static_cast<int64_t>(i));
  return {.table = Tensor::empty({shared ? range : n, 2, pairs}, {x.dtype(), x.device()}),
          .positions = shared ? Indices() : positions,
          .first = first,
          .rows = std::move(rows)};
}

RotaryRows arguments_of(const Tensor& x, const Rotations& rotations, RotaryPairing pairing, int64_t heads, bool back) {
  return {.x = x,
          .table = rotations.table,
          .table_rows = rotations.rows.on(x.device()),
          .rotated = heads,
          .pairing = pairing,
          .back = back,
          .y = Tensor::empty_like(x)};
}

// The index of the pair that makes this many turns over the trained context, as a real number.
double pair_with_turns(const RotaryOptions& options, double turns, int64_t dimensions) {
  const double angle = turns * 2 * std::numbers::pi / static_cast<double>(options.original_length);
  return -static_cast<double>(dimensions) * std::log(angle) / (2 * std::log(options.base));
}

// The ramp of yarn and llama3 at a pair: 0 where it is scaled as by linear, 1 where it is not scaled.
double ramp_at(const RotaryOptions& options, int64_t pair, double frequency, int64_t dimensions) {
  if (options.scaling == RotaryScaling::yarn && options.ramp != RotaryRamp::turns) {
    double first = pair_with_turns(options, options.beta_fast, dimensions);
    double last = pair_with_turns(options, options.beta_slow, dimensions);
    if (options.ramp == RotaryRamp::pairs) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, static_cast<double>(dimensions - 1));
    if (first == last) last += 0.001;
    return 1 - std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  }
  const double turns = static_cast<double>(options.original_length) * frequency / (2 * std::numbers::pi);
  return std::clamp((turns - options.beta_slow) / (options.beta_fast - options.beta_slow), 0.0, 1.0);
}

// The divisor of a pair's frequency.
double scale_at(const RotaryOptions& options, int64_t pair, double frequency, int64_t dimensions) {
  switch (options.scaling) {
    case RotaryScaling::none:
      return 1;
    case RotaryScaling::linear:
      return options.factor;
    case RotaryScaling::longrope:
      return options.pair_factors[static_cast<size_t>(pair)];
    default:
      const double kept = ramp_at(options, pair, frequency, dimensions);
      return 1 / (kept + (1 - kept) / options.factor);
  }
}

double magnitude_of(const RotaryOptions& options) {
  if (options.scaling != RotaryScaling::yarn && options.scaling != RotaryScaling::longrope) return 1;
  if (options.magnitude > 0) return options.magnitude;
  const double growth = std::log(options.factor);
  if (options.scaling == RotaryScaling::yarn) return 0.1 * growth + 1;
  return growth > 0 ? std::sqrt(1 + growth / std::log(static_cast<double>(options.original_length))) : 1;
}

void check_longrope(const RotaryOptions& options) {
  if (options.original_length < 2)  // its logarithm is a divisor
    fail<ConfigError>("original_length = {}: longrope needs at least 2", options.original_length);
  for (const double factor : options.pair_factors)
    if (!(factor > 0 && std::isfinite(factor)))
      fail<ConfigError>("pair_factors: one is {}, needs numbers above 0", factor);
}

}  // namespace

void RotaryOptions::validate() const {
  if (!(base >= 1 && std::isfinite(base))) fail<ConfigError>("base = {}: needs a finite number of at least 1", base);
  if (dimensions < 0 || dimensions % 2 != 0)
    fail<ConfigError>("dimensions = {}: needs an even number, or 0 for all", dimensions);
  if (scaling == RotaryScaling::none) return;
  if (!(factor >= 1 && std::isfinite(factor)))
    fail<ConfigError>("factor = {}: needs a finite number of at least 1", factor);
  if (scaling == RotaryScaling::linear) return;
  if (original_length < 1)
    fail<ConfigError>("original_length = {}: {} needs the context that was trained with", original_length,
                      enum_name(scaling));
  if (!(magnitude >= 0 && std::isfinite(magnitude)))
    fail<ConfigError>("magnitude = {}: needs a finite number of at least 0", magnitude);
  if (scaling == RotaryScaling::longrope) return check_longrope(*this);
  if (scaling == RotaryScaling::llama3 && ramp != RotaryRamp::turns)
    fail<ConfigError>("ramp = \"{}\": scaling = \"llama3\" has a ramp in turns", enum_name(ramp));
  if (ramp != RotaryRamp::turns && base == 1) fail<ConfigError>("base = 1: a ramp in pairs needs more");
  if (!(beta_slow >= 0 && std::isfinite(beta_slow)))
    fail<ConfigError>("beta_slow = {}: needs a finite number of at least 0", beta_slow);
  if (!(beta_fast > beta_slow && std::isfinite(beta_fast)))
    fail<ConfigError>("beta_fast = {}: needs a finite number above beta_slow = {}", beta_fast, beta_slow);
}

RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t dimensions) {
  options.validate();
  if (dimensions < 0 || dimensions % 2 != 0) fail<ConfigError>("dimensions = {}: needs an even number", dimensions);
  const auto factors = static_cast<int64_t>(options.pair_factors.size());
  if (options.scaling == RotaryScaling::longrope && 2 * factors != dimensions)
    fail<ConfigError>("pair_factors: has {} numbers, {} dimensions have {} pairs", factors, dimensions, dimensions / 2);
  RotaryFrequencies result{.frequencies = {}, .magnitude = magnitude_of(options)};
  for (int64_t i = 0; i < dimensions; i += 2) {
    const double frequency = std::pow(options.base, -static_cast<double>(i) / static_cast<double>(dimensions));
    result.frequencies.push_back(frequency / scale_at(options, i / 2, frequency, dimensions));
  }
  return result;
}

Tensor rotary(const Tensor& x, const Indices& positions, const RotaryOptions& options, std::optional<int64_t> heads) {
  const ProfileScope scope("rotary");
  check(x, positions, options);
  const int64_t count = heads.value_or(x.size(1));
  if (count < 0 || count > x.size(1))
    fail<ShapeError>("rotary: x {} has {} heads, {} are to be rotated", x.shape().text(), x.size(1), count);
  const int64_t dimensions = options.dimensions == 0 ? x.size(2) : options.dimensions;
  const RotaryFrequencies frequencies = rotary_frequencies(options, dimensions);
  Rotations rotations = rotations_of(x, positions, dimensions / 2);
  const Tensor table_positions = rotations.positions.empty() ? Tensor{} : rotations.positions.on(x.device());
  RotaryRows forward = arguments_of(x, rotations, options.pairing, count, false);
  dispatch(x.device(), [&](auto device) {
    rotary_table(device, frequencies, table_positions, rotations.first, rotations.table);
    rotary_rows(device, forward);
  });
  // A rotation is orthogonal up to its magnitude, so its gradient is the rotation by the negative angle.
  record("rotary", {x}, forward.y,
         [rotations = std::move(rotations), pairing = options.pairing, count](const Tensor& dy) {
           const RotaryRows backward = arguments_of(dy, rotations, pairing, count, true);
           dispatch(dy.device(), [&](auto device) { rotary_rows(device, backward); });
           return Gradients{backward.y};
         });
  return forward.y;
}

}  // namespace attune
