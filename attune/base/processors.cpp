#include "attune/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "attune/base/fail.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return text.starts_with('-') ? INT64_MIN : INT64_MAX;
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  return file >> text ? number(text) : std::nullopt;
}

std::optional<double> share(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Parses "100000 100000" (quota and period) or "max 100000" (no limit).
std::optional<double> limit_of_version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota, period;
  if (!(file >> quota >> period)) return std::nullopt;
  return share(number(quota), number(period));
}

std::optional<double> limit_of_version_1(const fs::path& group) {
  return share(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"));
}

// Returns the smallest limit of a group and of the groups above it. A container may not show the upper groups.
template <class Limit>
std::optional<double> least_limit(const fs::path& root, const fs::path& group, Limit&& limit_of) {
  std::optional<double> least;
  fs::path path = group.relative_path();
  for (;;) {
    if (const std::optional<double> limit = limit_of(root / path)) least = std::min(least.value_or(*limit), *limit);
    if (path.empty()) return least;
    path = path.parent_path();
  }
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

int processors_by_affinity() {
  // Machines with more processors than cpu_set_t has need a larger set.
  for (size_t count = CPU_SETSIZE; count <= size_t{1} << 20; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(count), [](cpu_set_t* s) { CPU_FREE(s); });
    if (!set) break;
    const size_t bytes = CPU_ALLOC_SIZE(count);
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// A line is "0::/group" in version 2 and "4:cpu,cpuacct:/group" in version 1. Version 1 mounts its groups in a folder
// that is named after the controllers.
std::optional<double> cgroup_processors(const CgroupFiles& files) {
  std::optional<double> least;
  const auto consider = [&](std::optional<double> limit) {
    if (limit) least = std::min(least.value_or(*limit), *limit);
  };
  std::ifstream membership(files.membership);
  for (std::string line; std::getline(membership, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* root : {"", "unified"}) consider(least_limit(files.mount / root, group, limit_of_version_2));
      continue;
    }
    const std::vector<std::string> names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    for (const std::string& root : {controllers, std::string("cpu")})
      consider(least_limit(files.mount / root, group, limit_of_version_1));
  }
  return least;
}

int choose_thread_count(const ThreadSettings& s) {
  if (s.attune_threads) {
    const std::optional<int64_t> wanted = number(*s.attune_threads);
    if (!wanted || *wanted < 1 || *wanted > kMostThreads)
      fail<ConfigError>("environment ATTUNE_THREADS = \"{}\": needs a number from 1 to {}", *s.attune_threads,
                        kMostThreads);
    return static_cast<int>(*wanted);
  }
  const int processors = std::clamp(s.affinity, 1, kMostThreads);
  if (s.omp_num_threads) {
    const std::optional<int64_t> wanted = number(s.omp_num_threads->substr(0, s.omp_num_threads->find(',')));
    if (wanted && *wanted >= 1) return static_cast<int>(std::min<int64_t>(*wanted, processors));
  }
  if (!s.quota || *s.quota >= processors) return processors;
  return std::max(1, static_cast<int>(*s.quota));
}

int default_thread_count() {
  static const int count = choose_thread_count({.attune_threads = environment("ATTUNE_THREADS"),
                                                .omp_num_threads = environment("OMP_NUM_THREADS"),
                                                .affinity = processors_by_affinity(),
                                                .quota = cgroup_processors()});
  return count;
}

}  // namespace attune
