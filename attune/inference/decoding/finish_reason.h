#pragma once

#include <utility>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// Why a text ends.
enum class FinishReason {
  eos,          // the model predicted eos
  stop,         // a stop string, or DecodingRequest::on_token returned false
  length,       // max_tokens
  context,      // the context of the model is full, and `slide` is off
  interrupted,  // cancelled
  deadline      // its deadline has passed
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
