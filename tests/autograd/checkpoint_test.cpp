#include "attune/autograd/checkpoint.h"

#include <gtest/gtest.h>

#include <memory>

#include "attune/autograd/graph.h"

namespace attune {
namespace {

// y = factor * a * b, element by element.
Tensor product(const Tensor& a, const Tensor& b, float factor = 1) {
  Tensor y = Tensor::empty_like(a);
  const auto times = [factor](const Tensor& p, const Tensor& q, const Tensor& out) {
    for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = factor * p.data<float>()[i] * q.data<float>()[i];
  };
  times(a, b, y);
  record("product", {a, b}, y, [times, a = a.detach(), b = b.detach()](const Tensor& dy) {
    Gradients gradients{Tensor::empty_like(a), Tensor::empty_like(b)};
    times(dy, b, gradients[0]);
    times(dy, a, gradients[1]);
    return gradients;
  });
  return y;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor y = a.clone();
  add_in_place(y, b);
  record("sum", {a, b}, y, [](const Tensor& dy) { return Gradients{dy, dy}; });
  return y;
}

Tensor leaf(std::vector<float> values) {
  Tensor x = Tensor::from({static_cast<int64_t>(values.size())}, values);
  require_gradient(x);
  return x;
}

std::vector<float> gradient_of(const Tensor& x) {
  const Tensor g = gradient(x);
  if (!g.defined()) return {};
  return {g.values<float>().begin(), g.values<float>().end()};
}

// A stack that uses one parameter w within its layers and outside, as tied embeddings are, and `memory` in each layer:
// the gradients of x, memory and w.
std::vector<std::vector<float>> gradients_of_stack(bool checkpoints) {
  const Tensor x = leaf({0.3f, -1.7f}), memory = leaf({1.1f, 0.9f}), w = leaf({0.7f, 1.3f});
  const auto layer = [&](const Tensor& h, const Tensor& m, float factor) {
    return sum_of(h, product(product(h, w, factor), sum_of(m, product(m, w))));
  };
  Tensor encoded = product(memory, w, 1.01f);
  Tensor h = product(x, w);
  for (const float factor : {0.37f, 1.93f, 0.71f}) {
    h = checkpoints ? checkpoint({h, encoded}, [&layer, factor](auto in) { return layer(in[0], in[1], factor); })
                    : layer(h, encoded, factor);
  }
  backward(product(h, w), Tensor::from({2}, std::vector<float>{0.77f, 1.31f}));
  return {gradient_of(x), gradient_of(memory), gradient_of(w)};
}

TEST(Checkpoint, GradientsAreEqualBitForBit) {
  const auto plain = gradients_of_stack(false);
  EXPECT_EQ(gradients_of_stack(true), plain);
  for (const auto& gradient : plain) EXPECT_EQ(gradient.size(), 2u);
}

TEST(Checkpoint, RunsTheFunctionAgainAndKeepsNothingInBetween) {
  const Tensor x = leaf({2}), w = leaf({3});
  int runs = 0;
  std::weak_ptr<int> kept;
  const Tensor y = checkpoint({x}, [&](std::span<const Tensor> in) {
    ++runs;
    const auto alive = std::make_shared<int>();
    kept = alive;
    Tensor z = product(in[0], w);
    EXPECT_EQ(requires_gradient(z), runs == 2);
    Tensor out = z.clone();
    record("copy", {z}, out, [alive](const Tensor& dy) { return Gradients{dy}; });
    return out;
  });
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(kept.expired());
  backward(y);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(kept.expired()) << "walked and freed";
  EXPECT_EQ(gradient_of(x), std::vector<float>{3});
  EXPECT_EQ(gradient_of(w), std::vector<float>{2});
  EXPECT_TRUE(execution().recording);
}

TEST(Checkpoint, InputsMayBeUndefinedUnusedOrWithoutGradient) {
  const Tensor constant = Tensor::full({1}, 5), x = leaf({2}), unused = leaf({1}), w = leaf({3});
  const Tensor y = checkpoint({{}, constant, x, unused}, [&](std::span<const Tensor> in) {
    EXPECT_FALSE(in[0].defined());
    return product(in[2], product(in[1], w));
  });
  backward(y);
  EXPECT_FALSE(requires_gradient(constant));
  EXPECT_EQ(gradient_of(x), std::vector<float>{15});
  EXPECT_EQ(gradient_of(w), std::vector<float>{10});
  EXPECT_TRUE(gradient_of(unused).empty());
}

TEST(Checkpoint, ParametersAloneGetGradientsToo) {
  const Tensor x = Tensor::full({1}, 5), w = leaf({3});
  backward(checkpoint({x}, [&](std::span<const Tensor> in) { return product(in[0], w); }));
  EXPECT_EQ(gradient_of(w), std::vector<float>{5});
}

TEST(Checkpoint, OneTensorMayBeTwoInputsAndPassThrough) {
  const Tensor x = leaf({3});
  set_gradient(x, Tensor::full({1}, 100));  // of an earlier batch
  backward(checkpoint({x, x}, [](std::span<const Tensor> in) { return sum_of(in[0], product(in[0], in[1])); }));
  EXPECT_EQ(gradient_of(x), std::vector<float>{100 + 1 + 2 * 3});
  clear_gradient(x);
  backward(checkpoint({x}, [](std::span<const Tensor> in) { return in[0]; }));
  EXPECT_EQ(gradient_of(x), std::vector<float>{1});
}

TEST(Checkpoint, AnInputMayBeAReshapedTensorThatHasAGradient) {
  const Tensor x = leaf({3});
  set_gradient(x, Tensor::full({1}, 100));  // of an earlier batch
  backward(checkpoint({x.reshape({1, 1})}, [](std::span<const Tensor> in) { return product(in[0], in[0]); }));
  EXPECT_EQ(gradient_of(x), std::vector<float>{100 + 2 * 3});
}

TEST(Checkpoint, ALongChainIsFreedWithoutRecursion) {
  const auto pass = [](std::span<const Tensor> in) { return in[0]; };
  Tensor y = checkpoint({leaf({3})}, pass);
  const std::weak_ptr<GradientNode> first = y.node();
  for (int i = 0; i < 200'000; ++i) y = checkpoint({y}, pass);
  EXPECT_FALSE(first.expired());
  y = {};
  EXPECT_TRUE(first.expired());
}

TEST(Checkpoint, Nests) {
  const Tensor x = leaf({3}), w = leaf({2});
  const auto inner = [&](std::span<const Tensor> in) { return product(in[0], w); };
  backward(checkpoint({x}, [&](std::span<const Tensor> in) { return product(checkpoint({in[0]}, inner), in[0]); }));
  EXPECT_EQ(gradient_of(x), std::vector<float>{2 * 2 * 3});
  EXPECT_EQ(gradient_of(w), std::vector<float>{9});
}

TEST(Checkpoint, TheSecondRunHasDropoutAndPrecisionOfTheFirst) {
  const Tensor x = leaf({3});
  std::vector<Execution> seen;
  const auto function = [&](std::span<const Tensor> in) {
    seen.push_back(execution());
    return product(in[0], in[0]);
  };
  Tensor y;
  {
    const ExecutionScope forward([](Execution& e) {
      e.dropout = DropoutStep{.seed = 5, .step = 6};
      e.precision = ProductPrecision::bfloat16;
      e.threads = 3;
    });
    y = checkpoint({x}, function);
  }
  const ExecutionScope other([](Execution& e) {
    e.dropout = DropoutStep{.seed = 7, .step = 8};
    e.threads = 2;
  });
  backward(y);
  ASSERT_EQ(seen.size(), 2u);
  for (const Execution& e : seen) {
    ASSERT_TRUE(e.dropout);
    EXPECT_EQ(e.dropout->seed, 5u);
    EXPECT_EQ(e.dropout->step, 6u);
    EXPECT_EQ(e.precision, ProductPrecision::bfloat16);
  }
  EXPECT_EQ(seen[0].threads, 3);
  EXPECT_EQ(seen[1].threads, 2) << "those of backward()";
}

TEST(Checkpoint, UnderNoGradItIsTheFunction) {
  const Tensor x = leaf({3});
  const NoGrad no_grad;
  int runs = 0;
  const Tensor y = checkpoint({x}, [&](std::span<const Tensor> in) {
    ++runs;
    return product(in[0], in[0]);
  });
  EXPECT_FALSE(requires_gradient(y));
  EXPECT_EQ(y.item(), 9);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace attune
