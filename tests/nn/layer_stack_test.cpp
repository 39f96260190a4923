#include "attune/nn/layer_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "attune/nn/dropout.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

class Stack final : public LayerStack {
 public:
  explicit Stack(bool decoder) : LayerStack(decoder ? Place::decoder : Place::encoder) {}
  void visit(Visitor&) override {}

  // Which of eight layers each of so many steps leaves out.
  std::vector<bool> left_out(uint64_t seed, uint64_t steps) const {
    std::vector<bool> found;
    for (uint64_t step = 0; step < steps; ++step) {
      const DropoutScope scope({.seed = seed, .step = step});
      for (int64_t layer = 0; layer < 8; ++layer) found.push_back(leaves_out(layer));
    }
    return found;
  }
  using LayerStack::leaves_out;
};

struct Stacks final : Module {
  Stack encoder{false}, decoder{true};
  void visit(Visitor& v) override {
    v("encoder", encoder);
    v("decoder", decoder);
  }
};

TEST(LayerDropout, LeavesOutAShareOfTheLayers) {
  Stacks two;
  set_layer_dropout(two, 0.25);
  const std::vector<bool> found = two.encoder.left_out(3, 500);
  EXPECT_NEAR(static_cast<double>(std::count(found.begin(), found.end(), true)), 1000, 100);
  for (int64_t layer = 0; layer < 8; ++layer) EXPECT_FALSE(two.encoder.leaves_out(layer)) << "outside of training";
}

TEST(LayerDropout, IsAFunctionOfSeedStepStackAndLayer) {
  Stacks two;
  set_layer_dropout(two, 0.25);
  const std::vector<bool> found = two.encoder.left_out(3, 10);
  EXPECT_EQ(found, two.encoder.left_out(3, 10));
  EXPECT_NE(found, two.encoder.left_out(4, 10));
  EXPECT_NE(found, two.decoder.left_out(3, 10));
  EXPECT_NE(std::vector(found.begin(), found.begin() + 40), std::vector(found.begin() + 40, found.end()));
}

TEST(LayerDropout, IsOffAtFirst) {
  const Stack stack(false);
  const std::vector<bool> found = stack.left_out(3, 10);
  EXPECT_EQ(std::count(found.begin(), found.end(), true), 0);
}

TEST(LayerDropout, RefusesWhatIsNoProbability) {
  Stacks two;
  EXPECT_EQ(message_of<ConfigError>([&] { set_layer_dropout(two, 1); }),
            "layer_dropout = 1: needs a number from 0 to below 1");
}

}  // namespace
}  // namespace attune
