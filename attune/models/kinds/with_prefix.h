#pragma once

#include <string_view>

#include "attune/base/fail.h"

namespace attune {

/// Calls check() and puts `prefix` in front of the message of a ConfigError: the field that its fields are in.
template <class Check>
void with_prefix(std::string_view prefix, Check&& check) {
  try {
    check();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}{}", prefix, error.what());
  }
}

}  // namespace attune
