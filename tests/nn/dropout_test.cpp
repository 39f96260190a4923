#include "attune/nn/dropout.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace attune
