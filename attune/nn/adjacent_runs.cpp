#include "attune/nn/adjacent_runs.h"

#include <array>
#include <cstddef>
#include <map>

namespace attune {

std::vector<std::vector<NamedParameter>> adjacent_runs(const std::vector<NamedParameter>& parameters) {
  std::map<const void*, size_t> run_of_end;
  std::vector<std::vector<NamedParameter>> runs;
  for (const NamedParameter& p : parameters) {
    const auto* begin = static_cast<const std::byte*>(p.tensor->address());
    const auto before = run_of_end.find(begin);
    size_t run = runs.size();
    if (before != run_of_end.end() &&
        Tensor::joined(std::array{*runs[before->second].back().tensor, *p.tensor}).defined()) {
      run = before->second;
      run_of_end.erase(before);
    } else {
      runs.emplace_back();
    }
    runs[run].push_back(p);
    if (p.tensor->bytes() > 0) run_of_end[begin + p.tensor->bytes()] = run;
  }
  return runs;
}

}  // namespace attune
