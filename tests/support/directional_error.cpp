#include "tests/support/directional_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/random.h"

namespace attune {

double directional_error(Module& model, const std::function<Tensor()>& loss) {
  require_gradients(model);
  clear_gradients(model);
  backward(loss());
  const std::vector<NamedParameter> parameters = trained_parameters(model);
  std::vector<std::vector<double>> directions;
  double expected = 0, scale = 0;
  uint64_t stream = 0;
  for (const NamedParameter& p : parameters) {
    Random random(7, stream++);
    std::vector<double>& direction = directions.emplace_back();
    const Tensor g = gradient(*p.tensor);
    if (!g.defined()) {  // of an expert that no token chose
      EXPECT_NE(p.name.find(".experts."), std::string::npos) << p.name << " has no gradient";
      direction.resize(static_cast<size_t>(p.tensor->numel()));
      continue;
    }
    for (const double value : g.values<double>()) {
      direction.push_back(random.normal());
      expected += value * direction.back();
      scale += std::abs(value * direction.back());
    }
  }
  const NoGrad no_grad;
  const auto moved = [&](double by) {
    for (size_t i = 0; i < parameters.size(); ++i)
      for (size_t j = 0; j < directions[i].size(); ++j)
        parameters[i].tensor->values<double>()[j] += by * directions[i][j];
    return loss().item();
  };
  double least = std::numeric_limits<double>::infinity();
  for (const double step : {1e-5, 1e-6, 1e-7}) {
    const double up = moved(step), down = moved(-2 * step);
    moved(step);
    least = std::min(least, std::abs((up - down) / (2 * step) - expected) / scale);
    if (least < 1e-7) break;
  }
  return least;
}

}  // namespace attune
