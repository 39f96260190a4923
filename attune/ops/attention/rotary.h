#pragma once
// Rotary positions: queries and keys are rotated by angles that grow with their position.

#include <optional>
#include <vector>

#include "attune/base/fields.h"
#include "attune/kernels/attention/rotary_pairing.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// How angles are scaled for contexts longer than those of training.
enum class RotaryScaling {
  none,
  linear,    // positions are divided by `factor`, Chen et al. 2023
  yarn,      // Peng et al. 2023
  llama3,    // YaRN's ramp in turns, without its magnitude, Dubey et al. 2024
  longrope,  // each pair has a factor of its own, Ding et al. 2024
};
/// The number in which the ramp of yarn is linear, from the pairs that are not scaled to those that are.
enum class RotaryRamp {
  turns,        // the number of turns over the trained context, as in the paper, section 3.2
  pairs,        // the index of the pair, from the one with beta_fast turns, rounded down, to that with beta_slow turns,
                // rounded up: the authors' code, and the models that were trained with it
  exact_pairs,  // the same without rounding
};

template <>
struct EnumNames<RotaryPairing> {
  static constexpr std::pair<RotaryPairing, const char*> values[] = {{RotaryPairing::half, "half"},
                                                                     {RotaryPairing::interleaved, "interleaved"}};
};
template <>
struct EnumNames<RotaryScaling> {
  static constexpr std::pair<RotaryScaling, const char*> values[] = {{RotaryScaling::none, "none"},
                                                                     {RotaryScaling::linear, "linear"},
                                                                     {RotaryScaling::yarn, "yarn"},
                                                                     {RotaryScaling::llama3, "llama3"},
                                                                     {RotaryScaling::longrope, "longrope"}};
};
template <>
struct EnumNames<RotaryRamp> {
  static constexpr std::pair<RotaryRamp, const char*> values[] = {
      {RotaryRamp::turns, "turns"}, {RotaryRamp::pairs, "pairs"}, {RotaryRamp::exact_pairs, "exact_pairs"}};
};

struct RotaryOptions {
  double base = 10000;
  RotaryPairing pairing = RotaryPairing::half;
  int64_t dimensions = 0;  // how many of each head are rotated, the first ones; even; 0: all
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;            // all scalings: how many times longer than the trained context
  int64_t original_length = 0;  // yarn, llama3, longrope: the trained context
  double beta_fast = 32;  // yarn, llama3: pairs with more turns than this over the trained context are not scaled,
  double beta_slow = 1;   // ... and pairs with fewer turns than this are scaled as by linear; between, a ramp
  RotaryRamp ramp = RotaryRamp::turns;  // yarn
  /// yarn, longrope: a factor on rotated queries and keys; 0: yarn has 0.1 ln(factor) + 1, section 3.4, and longrope
  /// sqrt(1 + ln(factor) / ln(original_length)).
  double magnitude = 0;
  std::vector<double> pair_factors = {};  // longrope: the frequency of each pair is divided by its own
  bool operator==(const RotaryOptions&) const = default;
  void validate() const;  // throws ConfigError naming the field and the value
};

template <class FieldVisitor>
void visit_fields(RotaryOptions& c, FieldVisitor& v) {
  v("base", c.base);
  v("pairing", c.pairing);
  v("dimensions", c.dimensions);
  v("scaling", c.scaling);
  v("factor", c.factor);
  v("original_length", c.original_length);
  v("beta_fast", c.beta_fast);
  v("beta_slow", c.beta_slow);
  v("ramp", c.ramp);
  v("magnitude", c.magnitude);
  v("pair_factors", c.pair_factors);
}

/// base^(-2i / dimensions) for each pair i of the `dimensions` that are rotated, scaled according to options.scaling.
/// Throws ConfigError.
RotaryFrequencies rotary_frequencies(const RotaryOptions& options, int64_t dimensions);

/// Rotates each pair (x_a, x_b) of row r by the angle t = positions[r] * frequency:
///   (x_a cos t - x_b sin t, x_b cos t + x_a sin t) * magnitude
///   x [n, heads, d]   positions [n]   returns [n, heads, d]
/// If `heads` is given, only the first `heads` heads of each row are rotated; the others are copied. The product of a
/// rotated query and key depends on their positions only by the difference. The result of a row depends only on that
/// row and its position. Differentiable in x. Throws ShapeError, ConfigError. Source: Su et al. 2021, eq. 34.
Tensor rotary(const Tensor& x, const Indices& positions, const RotaryOptions& options,
              std::optional<int64_t> heads = {});

}  // namespace attune
