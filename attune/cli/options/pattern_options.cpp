#include "attune/cli/options/pattern_options.h"

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/models/config.h"

namespace attune::cli {

void PatternOptions::add_to(CLI::App& command) {
  command.add_option("--size", size, "window: |i - j| < size")->capture_default_str();
  command.add_option("--stride", stride, "strided, fixed")->capture_default_str();
  command.add_option("--summary", summary, "fixed: last positions of a block that all may attend to")
      ->capture_default_str();
}

AttentionPattern PatternOptions::pattern(const char* option, const std::string& name) const {
  AttentionPattern pattern;
  Json given;
  given[option] = name;
  FieldReader(given, "", "")(option, pattern);
  const auto set = [&](const char* field, int64_t& value) {
    const std::string_view size_name = field;
    if (size_name == "size") {
      value = size;
    } else if (size_name == "stride") {
      value = stride;
    } else if (size_name == "summary") {
      value = summary;
    } else {
      fail<ConfigError>("pattern {}: there is no option for its {}", name, field);
    }
  };
  std::visit([&](auto& kind) { visit_fields(kind, set); }, pattern);
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
