#include "attune/base/process_memory.h"

#include <sys/resource.h>

namespace attune {

int64_t peak_process_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace attune
