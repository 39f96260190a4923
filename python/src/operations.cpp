// Differentiable functions of tensors, and the settings under which they run.

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <utility>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/nn/dropout.h"
#include "attune/ops/activation.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/embedding.h"
#include "attune/ops/gather.h"
#include "attune/ops/layer_norm.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/matmul.h"
#include "attune/ops/mean_pool.h"
#include "attune/ops/residual.h"
#include "attune/ops/softmax.h"
#include "attune/tensor/tensor.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

using EndedFlag = std::shared_ptr<std::atomic<bool>>;

/// The `with` blocks of a thread, the innermost last. Only their own thread ends them, each when it is the innermost: a
/// generator may begin a block on one thread and end it on another, or end it after the block around it.
class ThreadBlocks {
 public:
  static ThreadBlocks& of_this_thread() {
    thread_local ThreadBlocks blocks;
    return blocks;
  }
  ThreadBlocks() = default;
  ThreadBlocks(const ThreadBlocks&) = delete;
  ThreadBlocks& operator=(const ThreadBlocks&) = delete;
  ~ThreadBlocks() {
    while (!blocks_.empty()) blocks_.pop_back();  // the innermost first; a vector may destroy from the front
  }

  /// Begins a block, which ends once the flag that this returns is true.
  EndedFlag begin(const std::function<void(Execution&)>& change) {
    drop_ended();
    Block block{std::make_shared<std::atomic<bool>>(false), std::make_unique<ExecutionScope>(change)};
    block.execution = &execution();
    blocks_.push_back(std::move(block));
    return blocks_.back().ended;
  }
  /// Ends the innermost blocks as far as their flags are set.
  void drop_ended() {
    while (!blocks_.empty() && *blocks_.back().ended && blocks_.back().execution == &execution()) blocks_.pop_back();
  }
  bool has(const EndedFlag& flag) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.ended == flag; });
  }

 private:
  struct Block {
    EndedFlag ended;
    std::unique_ptr<ExecutionScope> scope;
    const Execution* execution = nullptr;  // the thread's, while the block is the innermost
  };
  std::vector<Block> blocks_;
};

/// A change of the thread's Execution for the time of a `with` block.
class Settings {
 public:
  explicit Settings(std::function<void(Execution&)> change) : change_(std::move(change)) {}
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  ~Settings() { end(); }

  void enter() {
    if (ended_) fail<Error>("with: this object is in use already");
    ended_ = ThreadBlocks::of_this_thread().begin(change_);
  }
  void exit() {
    if (!end()) fail<Error>("with: blocks of one thread must end in the reverse order of their beginning");
  }

 private:
  // False where the block is of this thread and not the innermost: it then ends with those within it. A block of
  // another thread ends when that thread begins or ends one.
  bool end() {
    if (!ended_) return true;
    const EndedFlag ended = std::exchange(ended_, nullptr);
    *ended = true;
    ThreadBlocks& blocks = ThreadBlocks::of_this_thread();
    blocks.drop_ended();
    return !blocks.has(ended);
  }

  std::function<void(Execution&)> change_;
  EndedFlag ended_;  // of the block; null: there is none
};

/// A copy of the name that is never freed: the graph keeps the name of an operation as a pointer.
const char* lasting(const std::string& name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

Tensor record_function(const std::string& name, const std::vector<Tensor>& inputs, const Tensor& output,
                       nb::callable backward) {
  Tensor y = output.detach();
  const bool needed = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return requires_gradient(x); });
  if (!needed || !execution().recording) return y;
  std::vector<DType> types;
  for (const Tensor& x : inputs) types.push_back(x.dtype());
  record_always(lasting(name), inputs, y,
                [function = shared_callable(std::move(backward)), types = std::move(types)](const Tensor& dy) {
                  const CallbackScope scope;
                  Gradients gradients;
                  for (const nb::handle g : (*function)(dy)) {
                    if (!g.is_none() && !nb::isinstance<Tensor>(g))
                      throw nb::type_error("record: backward needs to return a Tensor or None for each input");
                    // A copy: later gradients are added to it in place, and an array may have its memory.
                    gradients.push_back(g.is_none() ? Tensor{} : nb::cast<Tensor>(g).clone());
                  }
                  if (gradients.size() != types.size())
                    fail<ShapeError>("backward: returned {} gradients for {} inputs", gradients.size(), types.size());
                  for (size_t i = 0; i < types.size(); ++i)
                    if (gradients[i].defined() && !is_gradient_type(gradients[i].dtype(), types[i]))
                      fail<ShapeError>("backward: gradient {} is {}, the input {}", i, name_of(gradients[i].dtype()),
                                       name_of(types[i]));
                  return gradients;
                });
  return y;
}

void bind_settings(nb::module_& m) {
  nb::class_<Settings>(m, "Settings", "What no_grad() and its like return, for `with`.")
      .def("__enter__", &Settings::enter)
      .def(
          "__exit__", [](Settings& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *args: typing.Any) -> None"));
  m.def(
      "no_grad", [] { return new Settings([](Execution& e) { e.recording = false; }); },
      "with no_grad(): operations of this thread are not recorded for backward().");
  m.def(
      "threads",
      [](int64_t count) {
        static_cast<void>(ThreadScope(count));  // throws for a number out of range
        return new Settings([count](Execution& e) {
          if (count > 0) e.threads = static_cast<int>(count);
        });
      },
      nb::arg("count"), "with threads(2): calls of this thread work with two threads. 0: as many as before.");
  m.def(
      "dropout",
      [](uint64_t seed, uint64_t step) {
        return new Settings([=](Execution& e) { e.dropout = DropoutStep{.seed = seed, .step = step}; });
      },
      nb::arg("seed"), nb::arg("step"),
      "with dropout(seed, step): models have dropout, whose masks are a function of seed and step.");
  m.def(
      "precision",
      [](const std::string& name) {
        return new Settings([precision = precision_of(name)](Execution& e) { e.precision = precision; });
      },
      nb::arg("name"), "with precision(\"bfloat16\"): matrix products round their inputs.");
}

using Unary = Tensor (*)(const Tensor&);

void bind_unary(nb::module_& m, const char* name, Unary function, const char* documentation) {
  m.def(
      name, [function](const Tensor& x) { return unlocked([&] { return function(x); }); }, nb::arg("x"), documentation);
}

void bind_loss(nb::module_& m) {
  nb::class_<CrossEntropy>(m, "Loss", "A cross entropy.")
      .def_ro("tensor", &CrossEntropy::loss, "The loss as a differentiable tensor without dimensions.")
      .def_prop_ro(
          "sum_negative_log_likelihood",
          [](const CrossEntropy& self) { return self.sum_negative_log_likelihood.item(); },
          "Neither smoothed nor scaled.")
      .def_ro("labels", &CrossEntropy::labels, "How many labels count.")
      .def_prop_ro(
          "correct", [](const CrossEntropy& self) { return static_cast<int64_t>(self.correct.item()); },
          "How many of them have the largest logit.")
      .def("item", [](const CrossEntropy& self) { return self.loss.item(); })
      .def("__float__", [](const CrossEntropy& self) { return self.loss.item(); })
      .def(
          "backward", [](const CrossEntropy& self) { unlocked([&] { backward(self.loss); }); },
          "Adds the gradient of the loss to every leaf that it depends on.");
  m.def(
      "cross_entropy",
      [](const Tensor& logits, const std::vector<int32_t>& labels, double label_smoothing, int32_t ignore_index) {
        return unlocked([&] {
          return cross_entropy(logits, labels,
                               {.label_smoothing = label_smoothing, .ignore_index = ignore_index, .scale = 0});
        });
      },
      nb::arg("logits"), nb::arg("labels"), nb::arg("label_smoothing") = 0.0, nb::arg("ignore_index") = -1,
      R"(The mean cross entropy: logits [n, classes], labels [n] -> a Loss, whose tensor has no dimensions.

A row whose label is `ignore_index` does not count. Differentiable in logits. Throws ShapeError, and DataError for a
label outside the classes. Label smoothing: Szegedy et al. 2016, section 7.

>>> round(ops.cross_entropy(Tensor.zeros([2, 4]), [1, 3]).item(), 4)
1.3863
)");
}

}  // namespace

void bind_operations(nb::module_& m) {
  bind_settings(m);
  bind_loss(m);
  bind_unary(m, "relu", &relu, "max(0, x), with gradient 0 at 0: x of any shape -> the same shape. Differentiable.");
  bind_unary(m, "gelu", &gelu,
             "x Phi(x) = x (1 + erf(x / sqrt(2))) / 2: x of any shape -> the same shape. Differentiable. Hendrycks & "
             "Gimpel 2016, section 2.");
  bind_unary(m, "silu", &silu,
             "x sigmoid(x): x of any shape -> the same shape. Differentiable. Hendrycks & Gimpel 2016, section 2.");
  bind_unary(m, "tanh", &tanh, "tanh(x): x of any shape -> the same shape. Differentiable.");
  bind_unary(m, "softmax", &softmax, R"(exp(x) / sum(exp(x)) over the last dimension: x [..., n] -> the same shape.

A row of only -inf gives zeros. Differentiable. Throws ShapeError for x without dimensions.

>>> ops.softmax(Tensor.zeros([2, 4])).tolist()[0]
[0.25, 0.25, 0.25, 0.25]
)");
  bind_unary(
      m, "log_softmax", &log_softmax,
      "x - log(sum(exp(x))) over the last dimension: x [..., n] -> the same shape. A row of only -inf gives -inf. "
      "Differentiable. Throws ShapeError for x without dimensions.");
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
        return unlocked([&] { return linear(x, weight, bias.value_or(Tensor{})); });
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      R"(x weight^T + bias: x [..., in], weight [out, in], bias [out] or None -> [..., out].

Differentiable in x, weight and bias. Throws ShapeError.

>>> ops.linear(Tensor.zeros([3, 2, 4]), Tensor.zeros([5, 4])).shape
(3, 2, 5)
)");
  m.def(
      "matmul",
      [](const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
        return unlocked([&] { return matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b}); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("transpose_a") = false, nb::arg("transpose_b") = false,
      R"(The product of two matrices: a [m, k], b [k, n] -> [m, n].

transpose_a: a is [k, m]; transpose_b: b is [n, k]. Differentiable in both. Throws ShapeError.

>>> ops.matmul(Tensor.zeros([2, 3]), Tensor.zeros([5, 3]), transpose_b=True).shape
(2, 5)
)");
  m.def(
      "add", [](const Tensor& x, const Tensor& y) { return unlocked([&] { return residual_dropout(x, y); }); },
      nb::arg("x"), nb::arg("y"),
      "x + y, of one shape and dtype -> the same. Differentiable in both. Throws ShapeError. A residual connection is "
      "this: Vaswani et al. 2017, section 3.1.");
  m.def(
      "layer_norm",
      [](const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
        return unlocked([&] { return layer_norm(x, weight, bias.value_or(Tensor{})); });
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      "weight (x - mean) / sqrt(variance + 1e-5) + bias over each row: x [..., d], weight [d], bias [d] or None -> "
      "[..., d]. Differentiable in x, weight and bias. Throws ShapeError. Ba et al. 2016, equation 4.");
  m.def(
      "embedding",
      [](const std::vector<int32_t>& ids, const Tensor& table) {
        return unlocked([&] { return embedding(ids, table); });
      },
      nb::arg("ids"), nb::arg("table"), R"(Rows of a table: ids [m], each from 0 to n - 1, table [n, d] -> [m, d].

Differentiable in the table. Throws ShapeError, and DataError for an id outside the table. Vaswani et al. 2017, section
3.4.

>>> ops.embedding([1, 0, 1], Tensor.zeros([2, 4])).shape
(3, 4)
)");
  m.def(
      "gather",
      [](const Tensor& x, const std::vector<int32_t>& rows) { return unlocked([&] { return gather(x, rows); }); },
      nb::arg("x"), nb::arg("rows"),
      "Rows of x: x [n, d], rows [m] from -1 to n - 1 -> [m, d]; zeros where a row is -1. Differentiable in x. Throws "
      "ShapeError.");
  m.def("record", &record_function, nb::arg("name"), nb::arg("inputs"), nb::arg("output"), nb::arg("backward"),
        nb::sig("def record(name: str, inputs: collections.abc.Sequence[Tensor], output: Tensor, backward: "
                "collections.abc.Callable[[Tensor], collections.abc.Iterable[Tensor | None]]) -> Tensor"),
        R"(Makes a computation that something else did, NumPy say, a part of the graph.

`output` is what it computed of `inputs`. `backward` takes d(loss)/d(output) and returns d(loss)/d(input) for each
input, None where there is none. Returns the output as a differentiable tensor.

>>> import numpy as np
>>> x = Tensor(np.array([[1.0, 2.0]]), requires_grad=True)
>>> square = Tensor(np.asarray(x) ** 2)
>>> y = ops.record("square", [x], square, lambda dy: [Tensor(2 * np.asarray(x) * np.asarray(dy))])
>>> y.backward(Tensor(np.ones((1, 2))))
>>> x.grad.tolist()
[[2.0, 4.0]]
)");
}

}  // namespace attune::python
