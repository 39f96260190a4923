#pragma once
// The operators of expressions. All throw DataError for operands that they do not take.

#include <string_view>

#include "attune/text/jinja/builtins.h"

namespace attune::jinja {

/// "-", "+" or "not" in front of a value.
Value unary(std::string_view operation, const Value& value);

/// "+", "-", "*", "/", "//", "%", "**" or "~" between two values. "and" and "or" are the interpreter's, since they may
/// not need their second value.
Value binary(std::string_view operation, const Value& a, const Value& b, Meter& meter);

/// "==", "!=", "<", "<=", ">", ">=", "in" or "not in" between two values.
bool compare(std::string_view operation, const Value& a, const Value& b, Meter& meter);

}  // namespace attune::jinja
