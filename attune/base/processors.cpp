#include "attune/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "attune/base/cgroup.h"
#include "attune/base/fail.h"
#include "attune/base/parsed_number.h"

namespace attune {
namespace {

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

int choose_thread_count(const ThreadSettings& s) {
  if (s.attune_threads) {
    const std::optional<int64_t> wanted = parsed_number(*s.attune_threads);
    if (!wanted || *wanted < 1 || *wanted > kMostThreads)
      fail<ConfigError>("environment ATTUNE_THREADS = \"{}\": needs a number from 1 to {}", *s.attune_threads,
                        kMostThreads);
    return static_cast<int>(*wanted);
  }
  const int processors = std::clamp(s.affinity, 1, kMostThreads);
  if (s.omp_num_threads) {
    const std::optional<int64_t> wanted = parsed_number(s.omp_num_threads->substr(0, s.omp_num_threads->find(',')));
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
