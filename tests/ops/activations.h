#pragma once
// Every activation at the end of a product.

#include <array>

#include "attune/models/config.h"

namespace attune {

inline constexpr auto kActivations = [] {
  constexpr auto& names = EnumNames<Activation>::values;
  std::array<Activation, std::size(names)> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = names[i].first;
  return all;
}();

}  // namespace attune
