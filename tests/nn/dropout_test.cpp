#include "attune/nn/dropout.h"

#include <gtest/gtest.h>

#include "attune/nn/layer_stack.h"

namespace attune {
namespace {

struct Two final : Module {
  Dropout first{0.5}, second{0.25};
  void visit(Visitor& v) override {
    v("first", first);
    v("second", second);
  }
};

TEST(Dropout, ItsMaskIsThatOfTheContextAtItsPlace) {
  Two two;
  number_dropouts(two);
  EXPECT_FALSE(two.second.mask().active()) << "off without a seed";
  const DropoutScope scope({.seed = 3, .step = 4});
  EXPECT_EQ(two.first.mask(), (DropoutMask{.probability = 0.5, .seed = 3, .step = 4, .op = 0}));
  EXPECT_EQ(two.second.mask(), (DropoutMask{.probability = 0.25, .seed = 3, .step = 4, .op = 1}));
}

// A layer that is used again in a forward pass draws anew: layers that share their parameters are one object.
TEST(Dropout, EachUseOfALayerHasItsOwnMask) {
  Two two;
  number_dropouts(two);
  const DropoutScope scope({.seed = 3, .step = 4});
  const Module* const other = nullptr;
  const std::vector<const Module*> layers = {&two, other, &two, &two};
  std::vector<DropoutMask> masks;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerUse use(layers, i);
    if (layers[i] != nullptr) masks.push_back(two.second.mask());
  }
  EXPECT_EQ(masks[0], two.second.mask());
  EXPECT_NE(masks[1], masks[0]);
  EXPECT_NE(masks[2], masks[0]);
  EXPECT_NE(masks[2], masks[1]);
}

}  // namespace
}  // namespace attune
