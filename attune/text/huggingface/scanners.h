#pragma once
// The split patterns of well-known models, by hand: several times as fast as a regular expression.

#include <cstddef>
#include <memory>
#include <string_view>

#include "attune/text/huggingface/pattern.h"

namespace attune::huggingface {

/// The scanner for exactly this expression, or null.
std::unique_ptr<Pattern> scanner_for(std::string_view expression);

}  // namespace attune::huggingface
