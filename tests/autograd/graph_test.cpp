#include "attune/autograd/graph.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace attune {
namespace {

// y = factor * x, counting how many of its closures are alive.
Tensor scale(const Tensor& x, float factor, std::shared_ptr<int> alive = std::make_shared<int>()) {
  Tensor y = x.clone();
  for (float& v : y.values<float>()) v *= factor;
  record("scale", {x}, y, [factor, alive](const Tensor& dy) {
    Tensor dx = dy.clone();
    for (float& v : dx.values<float>()) v *= factor;
    return Gradients{dx};
  });
  return y;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor y = a.clone();
  add_in_place(y, b);
  record("sum", {a, b}, y, [](const Tensor& dy) { return Gradients{dy, dy}; });
  return y;
}

Tensor leaf(float value) {
  Tensor x = Tensor::full({2}, value);
  require_gradient(x);
  return x;
}

TEST(Autograd, AddsOverAllPaths) {
  const Tensor x = leaf(3);
  const Tensor y = sum_of(scale(x, 2), sum_of(x, scale(x, 5)));  // 8 x
  backward(y);
  EXPECT_EQ(gradient(x).data<float>()[0], 8);
}

// One gradient that goes to two inputs unchanged must not be changed for one through the other.
TEST(Autograd, SharedGradientsAreNotOverwritten) {
  const Tensor a = leaf(1), b = leaf(1);
  backward(sum_of(sum_of(a, b), scale(a, 10)));
  EXPECT_EQ(gradient(a).data<float>()[0], 11);
  EXPECT_EQ(gradient(b).data<float>()[0], 1);
}

TEST(Autograd, AGradientHasTheShapeOfItsTensor) {
  Tensor x = Tensor::full({2, 3}, 1, {.dtype = DType::f64});
  require_gradient(x);
  EXPECT_THROW(set_gradient(x, Tensor::full({3, 2}, 1, {.dtype = DType::f64})), ShapeError);
  set_gradient(x, Tensor::full({2, 3}, 1, {.dtype = DType::f64}));
  EXPECT_TRUE(gradient(x).defined());
}

TEST(Autograd, AGradientHasTheTypeAndACotangentTheDeviceOfItsTensor) {
  const Tensor x = leaf(1);
  EXPECT_EQ(message_of<ShapeError>([&] { set_gradient(x, Tensor::full({2}, 1, {.dtype = DType::f64})); }),
            "set_gradient: expected float32, found float64");
  EXPECT_EQ(message_of<ShapeError>([&] { backward(scale(x, 2), Tensor::full({2}, 1, {.dtype = DType::f64})); }),
            "backward: expected float32, found float64");
  EXPECT_EQ(message_of<ShapeError>([&] {
              backward(scale(x, 2), Tensor::full({1, 2}, 1));
            }),
            "backward: expected shape [2], found [1, 2]");
  EXPECT_EQ(message_of<ShapeError>([&] { backward(scale(x, 2), Tensor::full({2}, 1, {.device = Plain{}})); }),
            "backward: expected one on cpu, found plain");
  EXPECT_FALSE(gradient(x).defined());
}

TEST(Autograd, GradientsAccumulateOverCalls) {
  const Tensor x = leaf(1);
  backward(scale(x, 2));
  backward(scale(x, 3));
  EXPECT_EQ(gradient(x).data<float>()[0], 5);
  clear_gradient(x);
  EXPECT_FALSE(gradient(x).defined());
}

// Those of one number are added where the first is: that of a loss may be on the CPU.
TEST(Autograd, GradientsOfSeveralNumbersAreOnOneDevice) {
  const Tensor x = leaf(1);
  set_gradient(x, Tensor::full({2}, 3, {.device = Plain{}}));
  EXPECT_EQ(message_of<ShapeError>([&] { backward(scale(x, 2)); }),
            "add: float32 [2] on plain and float32 [2] on cpu do not fit");
  Tensor one = Tensor::full({1}, 1);
  require_gradient(one);
  set_gradient(one, Tensor::full({1}, 3, {.device = Plain{}}));
  backward(scale(one, 2));
  EXPECT_EQ(gradient(one).device(), Device(Plain{}));
  EXPECT_EQ(gradient(one).item(), 5);
}

TEST(Autograd, ReshapeKeepsTheGraph) {
  const Tensor x = leaf(1);
  const Tensor y = scale(x.reshape({2, 1}), 4);
  backward(y, Tensor::full({2, 1}, 2));
  EXPECT_EQ(gradient(x).shape(), (Shape{2}));
  EXPECT_EQ(gradient(x).data<float>()[1], 8);
}

TEST(Autograd, NothingIsRecordedUnderNoGrad) {
  const Tensor x = leaf(1);
  auto alive = std::make_shared<int>();
  {
    const NoGrad no_grad;
    EXPECT_FALSE(requires_gradient(scale(x, 2, alive)));
  }
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_TRUE(requires_gradient(scale(x, 2)));
}

TEST(Autograd, ClosuresAreFreedAsBackwardGoes) {
  const Tensor x = leaf(1);
  auto alive = std::make_shared<int>();
  const Tensor y = scale(scale(scale(x, 2, alive), 2, alive), 2, alive);
  EXPECT_EQ(alive.use_count(), 4);
  backward(y);
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Autograd, ASecondWalkIsAnError) {
  const Tensor x = leaf(1);
  const Tensor shared = scale(x, 2);
  backward(scale(shared, 3));
  EXPECT_EQ(message_of<ShapeError>([&] { backward(scale(shared, 5)); }),
            "backward: scale was differentiated before and its inputs are freed; run the forward pass again");
}

TEST(Autograd, LongChains) {
  const Tensor x = leaf(1);
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = scale(y, 1);
  backward(y);
  EXPECT_EQ(gradient(x).data<float>()[0], 1);
}

TEST(Autograd, ALossThatDependsOnNothing) {
  EXPECT_EQ(message_of<ShapeError>([] { backward(Tensor::zeros({1})); }),
            "backward: the loss depends on nothing that requires a gradient");
}

TEST(Autograd, ALeafIsCompleteAfterItsLastUse) {
  const Tensor early = leaf(1), late = leaf(2), tied = leaf(3), unused = leaf(4);
  const Tensor first = sum_of(scale(early, 2), tied);
  const Tensor y = sum_of(sum_of(first, scale(late, 3)), scale(tied, 5));
  std::vector<std::pair<const GradientNode*, float>> seen;
  backward(y, {}, [&](const GradientNode& node) { seen.emplace_back(&node, node.gradient.data<float>()[0]); });
  const std::vector<std::pair<const GradientNode*, float>> expected = {
      {late.node().get(), 3.0F}, {tied.node().get(), 6.0F}, {early.node().get(), 2.0F}};
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(gradient(unused).defined());
}

// Both inputs of one step.
TEST(Autograd, ALeafThatAStepUsesTwiceIsCompleteOnce) {
  const Tensor x = leaf(1);
  int64_t calls = 0;
  backward(sum_of(x, x), {}, [&](const GradientNode& node) {
    ++calls;
    EXPECT_EQ(node.gradient.data<float>()[0], 2);
  });
  EXPECT_EQ(calls, 1);
}

// Recursion would need a stack frame for each operation.
TEST(Autograd, ALongChainWithoutBackwardIsFreed) {
  const Tensor x = leaf(1);
  Tensor y = x;
  for (int i = 0; i < 300'000; ++i) y = scale(y, 1);
  const std::weak_ptr<GradientNode> end = y.node();
  y = {};
  EXPECT_TRUE(end.expired());
  EXPECT_TRUE(requires_gradient(x));
}

}  // namespace
}  // namespace attune
