#pragma once
// Regular expressions of tokenizer files. They are written for Oniguruma; PCRE2 runs them.

#include <memory>
#include <string>

#include "attune/text/huggingface/pattern.h"

namespace attune::huggingface {

/// Both the expression and the text may be hostile: steps, depth and memory of a search are limited. `where` begins
/// messages. Throws FileError.
std::unique_ptr<Pattern> make_regex(const std::string& expression, const std::string& where);

/// The expression as PCRE2 understands it: Oniguruma's \h, \s, \w, \d, \b, (?m), (?i) to the end of a group and \p of
/// scripts, sets within sets, {n,m}+, and characters that PCRE2's tables do not know yet. Throws FileError that names
/// what has no equivalent.
std::string translate_oniguruma(const std::string& expression, const std::string& where);

}  // namespace attune::huggingface
