#pragma once
// How many processors this process may use.

#include <optional>
#include <string>

namespace attune {

/// The number of processors that the system may run this thread on, at least 1.
int processors_by_affinity();

/// What choose_thread_count() decides by.
struct ThreadSettings {
  std::optional<std::string> attune_threads = {};   // environment ATTUNE_THREADS
  std::optional<std::string> omp_num_threads = {};  // environment OMP_NUM_THREADS
  int affinity = 1;                                 // processors_by_affinity()
  std::optional<double> quota = {};                 // cgroup_processors()
};

/// The largest number of threads that can be requested.
inline constexpr int kMostThreads = 1024;

/// Returns ATTUNE_THREADS if it is set; else the first number of OMP_NUM_THREADS, at most `affinity`; else `affinity`,
/// at most the quota rounded down, since further threads would be stopped while others wait for them. At least 1.
/// OMP_NUM_THREADS is ignored unless it is a number of at least 1. Throws ConfigError if ATTUNE_THREADS is not a number
/// from 1 to kMostThreads.
int choose_thread_count(const ThreadSettings& settings);

/// choose_thread_count() for this process, computed once.
int default_thread_count();

}  // namespace attune
