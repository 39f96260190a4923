#pragma once
// What a scheduler asks of its model.

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "tests/inference/decoding/wrapped_model.h"

namespace attune {

/// A model that notes its steps and its sources.
class CountingModel final : public WrappedModel {
 public:
  /// The number of steps in each cache: the lanes of a scheduler have one each.
  using Steps = std::map<const KvCache*, int64_t>;

  using WrappedModel::WrappedModel;
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override {
    {
      const std::lock_guard lock(gate);
      for (const auto& source : sources) entered.emplace_back(std::vector(source.begin(), source.end()), steps);
    }
    WrappedModel::add(sources, cache);
  }
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    {
      const std::lock_guard lock(gate);
      tokens.push_back(static_cast<int64_t>(input.tokens.size()));
      ++steps[&cache];
    }
    WrappedModel::step(input, cache, output);
  }

  mutable std::mutex gate;                                              // who holds it lets no step begin
  mutable std::vector<int64_t> tokens;                                  // that each step reads
  mutable Steps steps;                                                  // so far
  mutable std::vector<std::pair<std::vector<int32_t>, Steps>> entered;  // sources, and the steps before each
};

/// The most steps that a lane has made between two moments.
inline int64_t most_steps_between(const CountingModel::Steps& before, const CountingModel::Steps& after) {
  int64_t most = 0;
  for (const auto& [cache, steps] : after) {
    const auto found = before.find(cache);
    most = std::max(most, steps - (found == before.end() ? 0 : found->second));
  }
  return most;
}

}  // namespace attune
