#include "attune/autograd/graph.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/profile.h"

namespace attune {
namespace {

uint64_t next_order() {
  static std::atomic<uint64_t> counter{0};
  return ++counter;
}

// Keeps the first gradient as it is. Adds a second one in place, in the memory of one of the two that nobody else
// holds, and never in bfloat16, since sums in bfloat16 would lose small terms. A gradient of one number may be on
// another device: that of a loss may be on the CPU.
void accumulate(GradientNode& node, Tensor gradient) {
  if (gradient.numel() != node.shape.numel())
    fail<ShapeError>("backward: gradient {} does not fit the output {} of {}", gradient.shape().text(),
                     node.shape.text(), node.op);
  if (!node.gradient.defined()) {
    node.gradient = gradient.reshape({node.shape.begin(), node.shape.end()}).detach();
    return;
  }
  const ProfileScope scope("gradient accumulation");
  if (gradient.dtype() == DType::bf16) gradient = gradient.to(DType::f32);
  if (node.gradient.dtype() == DType::bf16) node.gradient = node.gradient.to(DType::f32);
  if (gradient.numel() == 1) gradient = gradient.to(node.gradient.device());
  gradient = gradient.reshape({node.shape.begin(), node.shape.end()}).detach();
  if (node.gradient.shared_by() > 1 && gradient.shared_by() == 1) std::swap(node.gradient, gradient);
  if (node.gradient.shared_by() > 1) node.gradient = node.gradient.clone();
  add_in_place(node.gradient, gradient);
}

void check_gradient(const char* name, const Tensor& x, const Tensor& gradient, bool any_device) {
  if (gradient.shape() != x.shape())
    fail<ShapeError>("{}: expected shape {}, found {}", name, x.shape().text(), gradient.shape().text());
  if (!is_gradient_type(gradient.dtype(), x.dtype()))
    fail<ShapeError>("{}: expected {}, found {}", name, name_of(x.dtype()), name_of(gradient.dtype()));
  if (!any_device && gradient.device() != x.device())
    fail<ShapeError>("{}: expected one on {}, found {}", name, x.device().text(), gradient.device().text());
}

// For each leaf: how many of the nodes that backward has not visited yet use it.
class LeafUses {
 public:
  explicit LeafUses(const GradientNode& loss) {
    std::vector<const GradientNode*> rest = {&loss};
    std::unordered_set<const GradientNode*> seen = {&loss};
    while (!rest.empty()) {
      const GradientNode* node = rest.back();
      rest.pop_back();
      for (const auto& input : node->inputs) {
        if (!input) continue;
        if (!input->backward) ++uses_[input.get()];
        if (seen.insert(input.get()).second) rest.push_back(input.get());
      }
    }
  }
  /// Removes one use; returns true for the last one.
  bool walk(const GradientNode* node) {
    const auto found = uses_.find(node);
    return found != uses_.end() && --found->second == 0;
  }

 private:
  std::unordered_map<const GradientNode*, int64_t> uses_;
};

struct LaterFirst {
  bool operator()(const std::shared_ptr<GradientNode>& a, const std::shared_ptr<GradientNode>& b) const {
    return a->order < b->order;
  }
};

}  // namespace

GradientNode::~GradientNode() {
  std::vector<std::shared_ptr<GradientNode>> rest = std::move(inputs);
  while (!rest.empty()) {
    const std::shared_ptr<GradientNode> node = std::move(rest.back());
    rest.pop_back();
    if (!node || node.use_count() > 1) continue;
    std::move(node->inputs.begin(), node->inputs.end(), std::back_inserter(rest));
    node->inputs.clear();
  }
}

void require_gradient(Tensor& x) {
  if (!is_floating(x.dtype()) && x.dtype() != DType::bf16)
    fail<ShapeError>("require_gradient: {} has no gradient", name_of(x.dtype()));
  auto node = std::make_shared<GradientNode>();
  node->order = next_order();
  node->shape = x.shape();
  x.set_node(std::move(node));
}

bool is_gradient_type(DType gradient, DType tensor) {
  const auto converts = [](DType type) { return type == DType::f32 || type == DType::bf16; };
  return gradient == tensor || (converts(gradient) && converts(tensor));
}

bool requires_gradient(const Tensor& x) {
  return x.node() != nullptr;
}

Tensor gradient(const Tensor& x) {
  return x.node() ? x.node()->gradient : Tensor{};
}

void set_gradient(const Tensor& x, Tensor gradient) {
  if (!x.node()) fail<ShapeError>("set_gradient: tensor {} requires no gradient", x.shape().text());
  if (gradient.defined()) check_gradient("set_gradient", x, gradient, true);
  x.node()->gradient = std::move(gradient);
}

void clear_gradient(const Tensor& x) {
  if (x.node()) x.node()->gradient = {};
}

bool is_recording(std::initializer_list<Tensor> inputs) {
  return execution().recording && std::any_of(inputs.begin(), inputs.end(), requires_gradient);
}

void record(const char* op, std::initializer_list<Tensor> inputs, Tensor& output, BackwardFunction backward) {
  if (is_recording(inputs)) record_always(op, {inputs.begin(), inputs.size()}, output, std::move(backward));
}

void record_always(const char* op, std::span<const Tensor> inputs, Tensor& output, BackwardFunction backward) {
  auto node = std::make_shared<GradientNode>();
  node->op = op;
  for (const Tensor& input : inputs) node->inputs.push_back(input.node());
  node->backward = std::move(backward);
  node->order = next_order();
  node->shape = output.shape();
  output.set_node(std::move(node));
}

void backward(const Tensor& loss, const Tensor& cotangent, const LeafObserver& on_complete) {
  if (!loss.node()) fail<ShapeError>("backward: the loss depends on nothing that requires a gradient");
  if (cotangent.defined()) check_gradient("backward", loss, cotangent, loss.numel() == 1);
  const NoGrad no_grad;
  std::optional<LeafUses> uses;
  if (on_complete) uses.emplace(*loss.node());
  accumulate(*loss.node(),
             cotangent.defined() ? cotangent : Tensor::full(loss.shape(), 1.0, {loss.dtype(), loss.device()}));

  std::priority_queue<std::shared_ptr<GradientNode>, std::vector<std::shared_ptr<GradientNode>>, LaterFirst> ready;
  std::unordered_set<const GradientNode*> seen;
  ready.push(loss.node());
  seen.insert(loss.node().get());
  while (!ready.empty()) {
    const std::shared_ptr<GradientNode> node = ready.top();
    ready.pop();
    if (node->walked)
      fail<ShapeError>("backward: {} was differentiated before and its inputs are freed; run the forward pass again",
                       node->op);
    if (!node->backward) continue;  // a leaf keeps its gradient
    node->walked = true;
    const ProfileScope scope(node->op, " backward");
    const Tensor dy = std::exchange(node->gradient, {});
    Gradients gradients = std::exchange(node->backward, {})(dy);
    const auto inputs = std::exchange(node->inputs, {});
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || i >= gradients.size() || !gradients[i].defined()) continue;
      accumulate(*inputs[i], std::move(gradients[i]));
      if (seen.insert(inputs[i].get()).second) ready.push(inputs[i]);
    }
    if (!uses) continue;
    for (const auto& input : inputs)
      if (input && uses->walk(input.get())) on_complete(*input);
  }
}

}  // namespace attune
