#include "attune/nn/linear.h"

namespace attune {
namespace {

struct Layers {
  std::array<const Linear*, 3> layers;
  size_t count;

  Layers(const Linear& first, const Linear& second, const Linear* third)
      : layers{&first, &second, third}, count(third != nullptr ? 3 : 2) {}

  bool use_panels(const Tensor& x) const {
    for (size_t i = 0; i < count; ++i)
      if (!layers[i]->uses_panels(x) || layers[i]->packed()->format() != layers[0]->packed()->format()) return false;
    return true;
  }
};

}  // namespace

Tensor fused(const Tensor& x, const Linear& first, const Linear& second, const Linear* third) {
  const Layers all(first, second, third);
  if (all.use_panels(x)) {
    std::array<PanelParameters, 3> parameters;
    for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->panel_parameters();
    return fused_panel_linear(x, {parameters.data(), all.count});
  }
  std::array<LinearParameters, 3> parameters;
  for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->parameters();
  return fused_linear(x, {parameters.data(), all.count});
}

std::array<Tensor, 3> each_of(const Tensor& x, const Linear& first, const Linear& second, const Linear* third) {
  const Layers all(first, second, third);
  std::array<Tensor, 3> products;
  if (all.use_panels(x)) {
    std::array<PanelParameters, 3> parameters;
    for (size_t i = 0; i < all.count; ++i) parameters[i] = all.layers[i]->panel_parameters();
    panel_linear_each(x, {parameters.data(), all.count}, {products.data(), all.count});
  } else {
    for (size_t i = 0; i < all.count; ++i) products[i] = (*all.layers[i])(x);
  }
  return products;
}

}  // namespace attune
