#include "attune/nn/module.h"

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/ops/scale.h"

namespace attune {
namespace {

// One parameter in two places, and one that is not trained.
struct Tied final : Module {
  Parameter first{.tensor = Tensor::zeros({2, 2})}, second{.tensor = first.tensor},
      fixed{.tensor = Tensor::zeros({2}), .trained = false};
  void visit(Visitor& v) override {
    v("first", first);
    v("second", second);
    v("fixed", fixed);
  }
};

TEST(Module, RequiringGradientsAgainKeepsThem) {
  Tied tied;
  require_gradients(tied);
  const Tensor before = tied.first.tensor;
  backward(scaled(tied.second.tensor, 3), Tensor::full({2, 2}, 1, {}));
  require_gradients(tied);
  ASSERT_TRUE(gradient(tied.first.tensor).defined());
  EXPECT_EQ(gradient(tied.first.tensor).values<float>()[0], 3);
  EXPECT_EQ(before.node(), tied.second.tensor.node()) << "what was taken before has the same gradient";
  EXPECT_FALSE(requires_gradient(tied.fixed.tensor));
  tied.first.trained = tied.second.trained = false;
  require_gradients(tied);
  EXPECT_FALSE(requires_gradient(tied.first.tensor)) << "what is not trained any more has no gradient";
}

}  // namespace
}  // namespace attune
