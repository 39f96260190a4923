#pragma once
// How much memory the process has ever had at once.

#include <sys/resource.h>

#include <cstdint>

namespace attune {

/// Bytes of the peak resident set.
inline int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace attune
