#include "attune/base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "attune/base/statm.h"

namespace attune {

int64_t peak_process_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

std::optional<int64_t> resident_process_bytes() {
  return statm_bytes(StatmField::resident);
}

int64_t process_memory_limit(const CgroupFiles& files) {
  const int64_t machine = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return std::min(machine, cgroup_memory(files).value_or(machine));
}

}  // namespace attune
