#include "attune/ops/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/profile.h"
#include "attune/kernels/rotary.h"
#include "attune/ops/rows.h"

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
  Indices positions;  // of the table, or none: first, first + 1, ...
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

// The pair, as a real number, that makes so many turns over the trained context.
double pair_with_turns(const RotaryOptions& options, double turns, int64_t dimensions) {
  const double angle = turns * 2 * std::numbers::pi / static_cast<double>(options.original_length);
  return -static_cast<double>(dimensions) * std::log(angle) / (2 * std::log(options.base));
}

// The ramp of yarn and llama3 at a pair: 0 where it is scaled as by linear, 1 where it is not scaled.
double ramp_at(const RotaryOptions& options, int64_t pair, double frequency, int64_t dimensions) {
  if (options.scaling == RotaryScaling::yarn && options.ramp == RotaryRamp::pairs) {
    const double first = std::max(std::floor(pair_with_turns(options, options.beta_fast, dimensions)), 0.0);
    double last = std::ceil(pair_with_turns(options, options.beta_slow, dimensions));
    last = std::min(last, static_cast<double>(dimensions - 1));
    if (first == last) last += 0.001;
    return 1 - std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  }
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
  if (scaling == RotaryScaling::linear) return;
  if (original_length < 1)
    fail<ConfigError>("original_length = {}: {} needs the context that was trained with", original_length,
                      enum_name(scaling));
  if (scaling == RotaryScaling::llama3 && ramp != RotaryRamp::turns)
    fail<ConfigError>("ramp = \"{}\": scaling = \"llama3\" has a ramp in turns", enum_name(ramp));
  if (ramp == RotaryRamp::pairs && base == 1) fail<ConfigError>("base = 1: a ramp in pairs needs more");
  if (!(magnitude >= 0 && std::isfinite(magnitude)))
    fail<ConfigError>("magnitude = {}: needs a finite number of at least 0", magnitude);
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
                                                                   : ramp_at(options, i / 2, frequency, dimensions);
    result.frequencies.push_back(kept == 1 ? frequency : (kept + (1 - kept) / options.factor) * frequency);
  }
  if (options.scaling == RotaryScaling::yarn)
    result.magnitude = options.magnitude > 0 ? options.magnitude : 0.1 * std::log(options.factor) + 1;
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
