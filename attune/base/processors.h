#pragma once
// How many processors this process may use.

#include <filesystem>
#include <optional>
#include <string>

namespace attune {

/// Processors that the scheduler may run this thread on, at least 1.
int processors_by_affinity();

/// Where Linux describes control groups: a process's own, and the mounted hierarchies.
struct CgroupFiles {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path mount = "/sys/fs/cgroup";
};

/// Processors' worth of time that the control groups of this process grant it, the least of all levels: cpu.max of
/// version 2; cpu.cfs_quota_us over cpu.cfs_period_us of version 1. Nothing where no level has a limit or none can be
/// read.
std::optional<double> cgroup_processors(const CgroupFiles& files = {});

/// What the number of threads is chosen by.
struct ThreadSettings {
  std::optional<std::string> attune_threads = {};   // environment ATTUNE_THREADS
  std::optional<std::string> omp_num_threads = {};  // environment OMP_NUM_THREADS
  int affinity = 1;                                 // processors_by_affinity()
  std::optional<double> quota = {};                 // cgroup_processors()
};

/// The most threads that can be asked for.
inline constexpr int kMostThreads = 1024;

/// ATTUNE_THREADS if it is set; else the first number of OMP_NUM_THREADS, but no more than `affinity`; else `affinity`,
/// but no more than the quota rounded down: threads beyond it would be stopped while others wait for them. At least 1.
/// An OMP_NUM_THREADS that is no number from 1 is ignored. Throws ConfigError for an ATTUNE_THREADS that is no number
/// from 1 to kMostThreads.
int choose_thread_count(const ThreadSettings& settings);

/// choose_thread_count() of this process, found out once.
int default_thread_count();

}  // namespace attune
