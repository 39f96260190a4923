#include "attune/cli/bench/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "attune/base/fail.h"

namespace attune::cli {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ProcessUsage process_usage(int64_t process) {
  const std::filesystem::path folder = "/proc/" + std::to_string(process);
  ProcessUsage usage;
  // proc(5): the fields behind the name, which stands in parentheses. The 14th and 15th of all are ticks of the
  // process, the 24th is its resident pages.
  std::ifstream file(folder / "stat");
  std::string text;
  if (!std::getline(file, text)) fail<Error>("there is no process {}", process);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string ignored;
  for (int field = 3; field < 14; ++field) fields >> ignored;
  int64_t user_ticks = 0, system_ticks = 0, pages = 0;
  fields >> user_ticks >> system_ticks;
  for (int field = 16; field < 24; ++field) fields >> ignored;
  if (!(fields >> pages)) fail<Error>("{}: is not as expected", (folder / "stat").string());
  usage.processor_seconds =
      static_cast<double>(user_ticks + system_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.memory_bytes = pages * ::sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder / "fd", error), end; !error && entry != end;
       entry.increment(error))
    ++usage.descriptors;
  if (error) fail<Error>("{}: {}", (folder / "fd").string(), error.message());
  return usage;
}

double own_processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace attune::cli
