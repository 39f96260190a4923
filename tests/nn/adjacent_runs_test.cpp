#include "attune/nn/adjacent_runs.h"

#include <gtest/gtest.h>

#include <array>

#include "attune/models/build.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"

namespace attune {
namespace {

std::unique_ptr<Module> small_model() {
  return build_model({.architecture = Architecture::decoder_lm,
                      .vocab = 12,
                      .d_model = 8,
                      .heads = 2,
                      .layers = 2,
                      .d_ff = 6,
                      .context_length = 16},
                     3);
}

// Names of parameters, for each run of more than one.
std::vector<std::vector<std::string>> long_runs(Module& module) {
  std::vector<std::vector<std::string>> names;
  for (const auto& run : adjacent_runs(named_parameters(module))) {
    if (run.size() == 1) continue;
    names.emplace_back();
    for (const NamedParameter& p : run) names.back().push_back(p.name);
  }
  return names;
}

TEST(AdjacentRuns, AreTheProjectionsOfOneInput) {
  const auto model = small_model();
  const auto runs = long_runs(*model);
  ASSERT_EQ(runs.size(), 4u) << "weights and biases of two layers";
  for (const auto& run : runs) EXPECT_EQ(run.size(), 3u) << run.front();
  EXPECT_NE(runs[0][2].find("w_v"), std::string::npos) << runs[0][2];
}

TEST(AdjacentRuns, StayAdjacentOnAnotherDeviceWithTheirValues) {
  for (const Device& device : devices_under_test()) {
    const auto model = small_model(), moved = small_model();
    move_parameters(*moved, device);
    EXPECT_EQ(long_runs(*moved), long_runs(*model));
    const auto before = named_parameters(*model), after = named_parameters(*moved);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].tensor->device(), device);
      EXPECT_EQ(host_values<float>(*after[i].tensor), host_values<float>(*before[i].tensor)) << before[i].name;
    }
  }
}

}  // namespace
}  // namespace attune
