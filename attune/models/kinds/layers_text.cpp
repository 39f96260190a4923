#include "attune/models/kinds/layers_text.h"

#include <fmt/format.h>
#include <algorithm>

namespace attune {

std::string layers_text(std::vector<int64_t> layers) {
  std::ranges::sort(layers);
  // Clang 14 does not compile std::ranges::unique().
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  std::string text = layers.size() == 1 ? "layer" : "layers";
  for (size_t first = 0, last = 0; first < layers.size(); first = ++last) {
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (last == first + 1) last = first;  // "7, 8" is as short as "7 to 8"
    text += fmt::format("{} {}", first == 0 ? "" : ",", layers[first] + 1);
    if (last > first) text += fmt::format(" to {}", layers[last] + 1);
  }
  return text;
}

}  // namespace attune
