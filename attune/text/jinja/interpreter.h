#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "attune/text/jinja/syntax.h"
#include "attune/text/jinja/value.h"

namespace attune::jinja {

/// What a template writes. `variables` are the names that it can use, beside range, dict, namespace, raise_exception
/// and strftime_now, which formats `now` (seconds since 1970) as local time. Throws DataError "WHERE:LINE: ..." for
/// what cannot be computed, for what the template refuses by raise_exception, and for what takes too much work, is
/// nested too deep or writes too much.
std::string render(const Block& block, const std::string& where, std::map<std::string, Value> variables, int64_t now);

}  // namespace attune::jinja
