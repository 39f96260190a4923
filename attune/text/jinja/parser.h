#pragma once

#include <set>
#include <string>
#include <string_view>

#include "attune/text/jinja/syntax.h"

namespace attune::jinja {

/// The filters and tests that the interpreter has; a template that names another one is refused.
struct KnownNames {
  std::set<std::string_view> filters, tests;
};

/// Throws ConfigError "WHERE:LINE: ..." for what is no template and for what is not supported, by name.
Block parse(std::string_view source, const std::string& where, const KnownNames& known);

}  // namespace attune::jinja
