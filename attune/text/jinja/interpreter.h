#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "attune/text/jinja/parser.h"
#include "attune/text/jinja/value.h"

namespace attune::jinja {

/// What a rendering may cost. A unit of work is an expression, a byte of a text or 1/32 of an item that is built, so
/// that it bounds time and memory.
struct Limits {
  int64_t work = int64_t{1} << 26;
  size_t output_bytes = size_t{16} << 20;
  int depth = 1000;  // of expressions, blocks and calls in each other
};

/// The filters and tests that render() knows.
const KnownNames& known_names();

/// What a template writes. `variables` are the names that it can use, beside range, dict, namespace, raise_exception
/// and strftime_now, which formats `now` (seconds since 1970) as local time. Throws DataError "WHERE:LINE: ..." for
/// what cannot be computed, for what the template refuses by raise_exception, and beyond the limits.
std::string render(const Block& block, const std::string& where, std::map<std::string, Value> variables, int64_t now,
                   const Limits& limits);

}  // namespace attune::jinja
