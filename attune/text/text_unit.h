#pragma once

#include <utility>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// What makes one document. A document is predicted without knowledge of the others.
enum class TextUnit {
  stream,     // everything, the files one after the other
  line,       // each line that has tokens
  paragraph,  // lines up to the next empty line; a line of only spaces and tabs counts as empty
  answer      // each prompt with its answer, of which only the answer is predicted
};

template <>
struct EnumNames<TextUnit> {
  static constexpr std::pair<TextUnit, const char*> values[] = {{TextUnit::stream, "stream"},
                                                                {TextUnit::line, "line"},
                                                                {TextUnit::paragraph, "paragraph"},
                                                                {TextUnit::answer, "answer"}};
};

}  // namespace attune
