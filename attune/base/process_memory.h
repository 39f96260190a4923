#pragma once

#include <cstdint>
#include <optional>

#include "attune/base/cgroup.h"

namespace attune {

/// The most memory that this process has had at once, in bytes, with the pages of mapped files that it has read.
int64_t peak_process_bytes();
/// What it has now, counted in the same way, or nothing if the system does not say.
std::optional<int64_t> resident_process_bytes();
/// What it may have at most: the machine's memory, or less where its control groups grant less.
int64_t process_memory_limit(const CgroupFiles& files = {});

}  // namespace attune
