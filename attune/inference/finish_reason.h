#pragma once

#include <utility>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// Why a text ends.
enum class FinishReason {
  eos,          // the model said so
  stop,         // a stop string, or whoever looks at the tokens
  length,       // max_tokens
  context,      // the model can look back no further, and `slide` is off
  interrupted,  // cancelled
  deadline      // its time is over
};

template <>
struct EnumNames<FinishReason> {
  static constexpr std::pair<FinishReason, const char*> values[] = {{FinishReason::eos, "eos"},
                                                                    {FinishReason::stop, "stop"},
                                                                    {FinishReason::length, "length"},
                                                                    {FinishReason::context, "context"},
                                                                    {FinishReason::interrupted, "interrupted"},
                                                                    {FinishReason::deadline, "deadline"}};
};

}  // namespace attune
