#include "attune/nn/attention/latent_cost.h"

namespace attune {
namespace {

constexpr double kNumber = 4;  // bytes of a float32

struct Sizes {
  double t, n, heads, dims, latent, rotary;  // dims: of a key without the rotary part, and of a value
  explicit Sizes(const LatentStep& s)
      : t(static_cast<double>(s.queries)),
        n(static_cast<double>(s.slots)),
        heads(static_cast<double>(s.heads)),
        dims(static_cast<double>(s.d_head + s.d_value)),
        latent(static_cast<double>(s.latent_dim)),
        rotary(static_cast<double>(s.rotary_dim)) {}
  double weights() const { return heads * dims * latent; }
  double cache() const { return n * (latent + rotary); }
};

}  // namespace

AttentionCost absorbed_cost(const LatentStep& step) {
  const Sizes s(step);
  const double cached = 2 * s.t * s.heads * s.n * (2 * s.latent + s.rotary);
  return {.operations = 2 * s.t * s.heads * s.dims * s.latent + cached,
          .cached_operations = cached,
          .bytes = kNumber * (s.weights() + s.cache() + 2 * s.t * s.heads * s.latent)};
}

AttentionCost expanded_cost(const LatentStep& step) {
  const Sizes s(step);
  const double keys_and_values = s.n * s.heads * (s.dims + s.rotary);
  return {.operations = 2 * s.n * s.latent * s.heads * s.dims + 2 * s.t * s.heads * s.n * (s.dims + s.rotary),
          .bytes = kNumber * (s.weights() + s.cache() + 2 * keys_and_values)};
}

bool absorbs(const LatentStep& step) {
  return step.queries == 1 || absorbed_cost(step).total() <= expanded_cost(step).total();
}

}  // namespace attune
