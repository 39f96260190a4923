#include "attune/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "attune/base/parsed_number.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// The first word of a file, if it is a number.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  return file >> text ? parsed_number(text) : std::nullopt;
}

std::optional<double> share(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Parses "100000 100000" (quota and period) or "max 100000" (no limit).
std::optional<double> processors_of_version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota, period;
  if (!(file >> quota >> period)) return std::nullopt;
  return share(parsed_number(quota), parsed_number(period));
}

std::optional<double> processors_of_version_1(const fs::path& group) {
  return share(number_in(group / "cpu.cfs_quota_us"), number_in(group / "cpu.cfs_period_us"));
}

// The file has "max", which is no number, where there is no limit.
std::optional<int64_t> memory_in(const fs::path& file) {
  const std::optional<int64_t> bytes = number_in(file);
  return bytes && *bytes > 0 ? bytes : std::nullopt;
}

std::optional<int64_t> memory_of_version_2(const fs::path& group) {
  return memory_in(group / "memory.max");
}

std::optional<int64_t> memory_of_version_1(const fs::path& group) {
  return memory_in(group / "memory.limit_in_bytes");
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

// Reads the limit of one controller from a group's folder, in either version.
template <class Value>
struct Limits {
  std::string controller;
  std::optional<Value> (*of_version_1)(const fs::path& group);
  std::optional<Value> (*of_version_2)(const fs::path& group);
};

// The smallest limit of all groups of this process and of the groups above them. A container may not show the upper
// groups. A line of the membership is "0::/group" in version 2 and "4:cpu,cpuacct:/group" in version 1. Version 1
// mounts its groups in a folder that is named after the controllers.
template <class Value>
std::optional<Value> least_limit(const CgroupFiles& files, const Limits<Value>& limits) {
  std::optional<Value> least;
  const auto consider = [&](const fs::path& root, const fs::path& group, auto&& limit_of) {
    for (fs::path path = group.relative_path();; path = path.parent_path()) {
      if (const std::optional<Value> limit = limit_of(root / path)) least = std::min(least.value_or(*limit), *limit);
      if (path.empty()) return;
    }
  };
  std::ifstream membership(files.membership);
  for (std::string line; std::getline(membership, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* root : {"", "unified"}) consider(files.mount / root, group, limits.of_version_2);
      continue;
    }
    const std::vector<std::string> names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), limits.controller) == names.end()) continue;
    for (const std::string& root : {controllers, limits.controller})
      consider(files.mount / root, group, limits.of_version_1);
  }
  return least;
}

}  // namespace

std::optional<double> cgroup_processors(const CgroupFiles& files) {
  return least_limit<double>(files, {"cpu", processors_of_version_1, processors_of_version_2});
}

std::optional<int64_t> cgroup_memory(const CgroupFiles& files) {
  return least_limit<int64_t>(files, {"memory", memory_of_version_1, memory_of_version_2});
}

}  // namespace attune
