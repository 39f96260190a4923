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

std::map<std::string, Tensor> made_of_runs(const std::vector<NamedParameter>& parameters,
                                           const std::function<Tensor(const Tensor& run)>& make) {
  std::map<std::string, Tensor> made;
  for (const std::vector<NamedParameter>& run : adjacent_runs(parameters)) {
    if (run.size() == 1) {  // may be a scalar, which has no rows
      made.emplace(run.front().name, make(run.front().tensor->detach()));
      continue;
    }
    std::vector<Tensor> parts;
    for (const NamedParameter& p : run) parts.push_back(*p.tensor);
    const Tensor all = make(Tensor::joined(parts));
    int64_t row = 0;
    for (const NamedParameter& p : run) {
      made.emplace(p.name, all.rows(row, row + p.tensor->size(0)));
      row += p.tensor->size(0);
    }
  }
  return made;
}

}  // namespace attune
