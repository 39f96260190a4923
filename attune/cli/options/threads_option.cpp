#include "attune/cli/options/threads_option.h"

#include "attune/base/fail.h"
#include "attune/base/processors.h"

namespace attune::cli {

void add_threads(CLI::App& command, int64_t& threads) {
  command.add_option("--threads", threads, "0: what the machine, ATTUNE_THREADS or OMP_NUM_THREADS allow")
      ->capture_default_str();
}

ThreadScope use_threads(int64_t threads) {
  if (threads < 0 || threads > kMostThreads)
    fail<ConfigError>("--threads {}: needs a number from 0 to {}", threads, kMostThreads);
  if (threads == 0) default_thread_count();  // what is wrong with ATTUNE_THREADS is said before the work
  return ThreadScope(threads);
}

}  // namespace attune::cli
