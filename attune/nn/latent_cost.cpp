#include "attune/nn/latent_cost.h"

namespace attune {
namespace {

constexpr double kNumber = 4;  // bytes of a float32

struct Sizes {
  double t, n, heads, d, latent, rotary;
  explicit Sizes(const LatentStep& s)
      : t(static_cast<double>(s.queries)),
        n(static_cast<double>(s.slots)),
        heads(static_cast<double>(s.heads)),
        d(static_cast<double>(s.d_head)),
        latent(static_cast<double>(s.latent_dim)),
        rotary(static_cast<double>(s.rotary_dim)) {}
  double weights() const { return 2 * heads * d * latent; }
  double cache() const { return n * (latent + rotary); }
};

}  // namespace

AttentionCost absorbed_cost(const LatentStep& step) {
  const Sizes s(step);
  const double cached = 2 * s.t * s.heads * s.n * (2 * s.latent + s.rotary);
  return {.operations = 4 * s.t * s.heads * s.d * s.latent + cached,
          .cached_operations = cached,
          .bytes = kNumber * (s.weights() + s.cache() + 2 * s.t * s.heads * s.latent)};
}

AttentionCost expanded_cost(const LatentStep& step) {
  const Sizes s(step);
  const double keys_and_values = s.n * s.heads * (2 * s.d + s.rotary);
  return {.operations = 4 * s.n * s.latent * s.heads * s.d + 2 * s.t * s.heads * s.n * (2 * s.d + s.rotary),
          .bytes = kNumber * (s.weights() + s.cache() + 2 * keys_and_values)};
}

bool absorbs(const LatentStep& step) {
  return step.queries == 1 || absorbed_cost(step).total() <= expanded_cost(step).total();
}

}  // namespace attune
