#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attune/models/build.h"
#include "attune/nn/adjacent_runs.h"

namespace attune {

/// Expects that the parameters of one product are adjacent in a model of this configuration, as they are when it is
/// built.
inline void expect_products_adjacent(Module& model, const TransformerConfig& config) {
  const std::unique_ptr<Module> built = build_without_values(config);
  std::map<std::string, Tensor> tensors;
  for (const NamedParameter& p : named_parameters(model)) tensors.emplace(p.name, *p.tensor);
  for (const auto& run : adjacent_runs(named_parameters(*built))) {
    std::vector<Tensor> parts;
    for (const NamedParameter& p : run) parts.push_back(tensors.at(p.name));
    EXPECT_TRUE(run.size() == 1 || Tensor::joined(parts).defined()) << run.front().name << ": is one product";
  }
}

}  // namespace attune
