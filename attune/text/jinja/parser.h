#pragma once

#include <string>
#include <string_view>

#include "attune/text/jinja/syntax.h"

namespace attune::jinja {

/// Throws ConfigError "WHERE:LINE: ..." for what is no template and for what is not supported, by name.
Block parse(std::string_view source, const std::string& where);

}  // namespace attune::jinja
