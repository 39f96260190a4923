#include "attune/cli/options/device_option.h"

namespace attune::cli {

void add_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "Where the model computes: cpu, cuda (the first GPU) or cuda:N [cpu]");
}

Device device_of(const std::string& given) {
  return given.empty() ? Device{} : Device::named(given);
}

}  // namespace attune::cli
