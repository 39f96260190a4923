#include "attune/cli/pattern_options.h"

#include <fmt/format.h>
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/models/config.h"

namespace attune::cli {

void PatternOptions::add_to(CLI::App& command) {
  command.add_option("--size", size, "window: |i - j| < size")->capture_default_str();
  command.add_option("--stride", stride, "strided, fixed")->capture_default_str();
  command.add_option("--summary", summary, "fixed: last places of a block that all may attend to")
      ->capture_default_str();
}

AttentionPattern PatternOptions::pattern(const std::string& name) const {
  AttentionPattern pattern = FullAttention{};
  if (name == "window") {
    pattern = SlidingWindow{.size = size};
  } else if (name == "strided") {
    pattern = StridedAttention{.stride = stride};
  } else if (name == "fixed") {
    pattern = FixedAttention{.stride = stride, .summary = summary};
  } else if (name != "full") {
    fail<ConfigError>("unknown pattern \"{}\", needs one of {}", name,
                      fmt::join(VariantNames<AttentionPattern>::values, ", "));
  }
  check_pattern("pattern " + name, pattern);
  return pattern;
}

std::string pattern_text(const AttentionPattern& pattern) {
  std::string text = variant_name(pattern);
  Json json = Json::object();
  FieldWriter writer(json);
  std::visit([&](auto fields) { visit_fields(fields, writer); }, pattern);
  for (const auto& [name, value] : json.items()) text += fmt::format(", {} {}", name, value.dump());
  return text;
}

}  // namespace attune::cli
