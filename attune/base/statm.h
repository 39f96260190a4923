#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>

namespace attune {

enum class StatmField { address_space, resident };  // in the order of the file

/// How many bytes the process has now, all of its address space or those in memory (resident). From /proc/self/statm,
/// which counts pages. Returns nothing if the system does not say.
inline std::optional<int64_t> statm_bytes(StatmField field) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"), &std::fclose);
  long pages[2] = {};
  if (file == nullptr || std::fscanf(file.get(), "%ld %ld", &pages[0], &pages[1]) != 2) return std::nullopt;
  return int64_t{pages[static_cast<int>(field)]} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace attune
