#pragma once

#include <chrono>
#include <cstdint>

namespace attune::serve {

/// The time in whole seconds, as OpenAI's API has it.
inline int64_t seconds_since_1970() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace attune::serve
