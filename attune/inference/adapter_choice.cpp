#include "attune/inference/adapter_choice.h"

#include <fmt/ranges.h>
#include <algorithm>

#include "attune/base/fail.h"
#include "attune/nn/adapters/adapter_rows.h"

namespace attune {

int32_t adapter_number(std::span<const std::string> names, const std::string& name) {
  if (name.empty()) return kNoAdapter;
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    fail<ConfigError>("adapter = \"{}\": the model was loaded with {}", name,
                      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<int32_t>(found - names.begin());
}

}  // namespace attune
