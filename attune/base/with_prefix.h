#pragma once

#include <string_view>

#include "attune/base/fail.h"

namespace attune {

/// Calls check(). If it throws a ConfigError, throws one whose message begins with `prefix`, such as "positions.".
template <class Check>
void with_prefix(std::string_view prefix, Check&& check) {
  try {
    check();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}{}", prefix, error.what());
  }
}

}  // namespace attune
