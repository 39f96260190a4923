#include "attune/nn/linear.h"

namespace attune {
namespace {

struct Layers {
  std::array<const Linear*, 3> layers;
  size_t count;

  Layers(const Linear& first, const Linear& second, const Linear* third)
      : layers{&first, &second, third}, count(third != nullptr ? 3 : 2) {}

  bool use_packed(const Tensor& x) const {
    for (size_t i = 0; i < count; ++i)
      if (!layers[i]->uses_packed(x) || layers[i]->packed()->format() != layers[0]->packed()->format()) return false;
    return true;
  }
};

}  // namespace

Tensor side_by_side(const Tensor& x, const Linear& first, const Linear& second, const Linear* third) {
  const Layers all(first, second, third);
  if (all.use_packed(x)) {
    std::array<PackedParameters, 3> parameters;
    for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->packed_parameters();
    return packed_linear_side_by_side(x, {parameters.data(), all.count});
  }
  std::array<LinearParameters, 3> parameters;
  for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->parameters();
  return linear_side_by_side(x, {parameters.data(), all.count});
}

std::array<Tensor, 3> each_of(const Tensor& x, const Linear& first, const Linear& second, const Linear* third) {
  const Layers all(first, second, third);
  std::array<Tensor, 3> products;
  if (all.use_packed(x)) {
    std::array<PackedParameters, 3> parameters;
    for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->packed_parameters();
    packed_linear_each(x, {parameters.data(), all.count}, {products.data(), all.count});
  } else {
    for (size_t i = 0; i < all.count; ++i) products[i] = (*all.layers[i])(x);
  }
  return products;
}

}  // namespace attune
