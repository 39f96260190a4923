#pragma once
// How much memory the process has ever had at once.

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace attune {

/// Bytes of the peak resident set.
inline int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

/// Freed memory that stays resident: the address sanitizer keeps 256 MiB for a while, and marks of the memory beside
/// it.
#if defined(__SANITIZE_ADDRESS__)
constexpr int64_t kKeptOfFreed = int64_t{512} << 20;
#else
constexpr int64_t kKeptOfFreed = 0;
#endif

/// What of a file this process has mapped, summed over its mappings.
struct MappedMemory {
  bool known = false;           // whether the system tells, see proc(5), /proc/pid/smaps
  int64_t resident_bytes = 0;   // that are in memory
  int64_t anonymous_bytes = 0;  // that are this process's own copies
  int64_t dirty_bytes = 0;      // that were written to
};

inline MappedMemory mapped_memory(const std::filesystem::path& file) {
  std::ifstream smaps("/proc/self/smaps");
  MappedMemory memory;
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kibibytes = 0;
    words >> key;
    if (!key.ends_with(":")) {
      ours = line.ends_with(" " + file.string());
      continue;
    }
    if (!ours || !(words >> kibibytes)) continue;
    const int64_t bytes = 1024 * kibibytes;
    memory.known = true;
    if (key == "Rss:") memory.resident_bytes += bytes;
    if (key == "Anonymous:") memory.anonymous_bytes += bytes;
    if (key == "Private_Dirty:" || key == "Shared_Dirty:") memory.dirty_bytes += bytes;
  }
  return memory;
}

}  // namespace attune
