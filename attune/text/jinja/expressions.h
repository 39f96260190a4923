#pragma once

#include "attune/text/jinja/syntax.h"
#include "attune/text/jinja/token_cursor.h"

namespace attune::jinja {

/// Reads an expression. Throws ConfigError "WHERE:LINE: ..." for what is none, and for filters and tests that are not
/// supported, by name.
ExpressionPtr parse_expression(TokenCursor& tokens);

/// Reads "a" or "a, b". `with_condition`: "a if b else c" too, which a loop's "in" does not take.
ExpressionPtr parse_tuple(TokenCursor& tokens, bool with_condition = true);

}  // namespace attune::jinja
