#pragma once
// What the control groups of Linux grant this process.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace attune {

/// Where Linux describes control groups: those of this process, and the mounted hierarchies.
struct CgroupFiles {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path mount = "/sys/fs/cgroup";
};

/// The processor time that the control groups grant this process, in processors; the smallest of all levels. Version 2
/// gives cpu.max, version 1 cpu.cfs_quota_us / cpu.cfs_period_us. Returns nothing if no level has a limit or none can
/// be read.
std::optional<double> cgroup_processors(const CgroupFiles& files = {});

/// The memory that the control groups grant this process, in bytes; the smallest of all levels. Version 2 gives
/// memory.max, version 1 memory.limit_in_bytes, which is larger than any machine's memory where there is no limit.
/// Returns nothing if no level has a limit or none can be read.
std::optional<int64_t> cgroup_memory(const CgroupFiles& files = {});

}  // namespace attune
