// attune bench machine: the limits that everything else is measured against.

#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/cli/bench/print_result.h"
#include "attune/cli/command.h"
#include "attune/cli/options/threads_option.h"
#include "attune/kernels/machine_peak.h"
#include "attune/kernels/memory_bandwidth.h"

namespace attune::cli {
namespace {

struct MachineBench {
  int64_t threads = 0;
  bool json = false;
};

int bench_machine(const MachineBench& o) {
  const ThreadScope threads = use_threads(o.threads);
  const double flops = measured_peak_flops();
  const MemoryBandwidth memory = measured_memory_bandwidth();
  const Json result = {{"program", "attune"},
                       {"threads", thread_count()},
                       {"float32_gflops_per_s", flops / 1e9},
                       {"memory_read_gb_per_s", memory.read / 1e9},
                       {"memory_triad_gb_per_s", memory.triad / 1e9},
                       {"flops_per_byte", flops / memory.read},
                       {"last_level_cache_mib", static_cast<double>(memory.last_level_cache_bytes) / (1 << 20)},
                       {"buffer_mib", static_cast<double>(memory.buffer_bytes) / (1 << 20)}};
  print_result(result, o.json);
  return 0;
}

}  // namespace

void add_bench_machine(CLI::App& bench) {
  const auto o = std::make_shared<MachineBench>();
  CLI::App* command = add_command(bench, "machine", "What the machine can do: operations and bytes of memory a second",
                                  "  attune bench machine\n"
                                  "  attune bench machine --threads 1 --json",
                                  [o] { return bench_machine(*o); });
  add_threads(*command, o->threads);
  command->add_flag("--json", o->json, "One JSON object on standard output");
}

}  // namespace attune::cli
