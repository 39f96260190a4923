// Differentiable functions of tensors, and the settings under which they run.

#include <algorithm>
#include <set>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/nn/dropout.h"
#include "attune/ops/activation.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/embedding.h"
#include "attune/ops/gather.h"
#include "attune/ops/layer_norm.h"
#include "attune/ops/linear.h"
#include "attune/ops/matmul.h"
#include "attune/ops/mean_pool.h"
#include "attune/ops/residual.h"
#include "attune/ops/softmax.h"
#include "precision.h"
#include "tensor.h"

namespace attune::python {
namespace {

/// A change of the thread's Execution for the time of a `with` block.
class Settings {
 public:
  explicit Settings(std::function<void(Execution&)> change) : change_(std::move(change)) {}
  ~Settings() = default;

  void enter() {
    if (scope_) fail<Error>("with: this object is in use already");
    scope_ = std::make_unique<ExecutionScope>(change_);
    active().push_back(this);
  }
  void exit() {
    if (active().empty() || active().back() != this)
      fail<Error>("with: blocks of one thread must end in the reverse order of their beginning");
    active().pop_back();
    scope_.reset();
  }

 private:
  static std::vector<Settings*>& active() {
    thread_local std::vector<Settings*> blocks;
    return blocks;
  }

  std::function<void(Execution&)> change_;
  std::unique_ptr<ExecutionScope> scope_;
};

/// The graph keeps the name of an operation as a pointer.
const char* lasting(const std::string& name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

Tensor record_function(const std::string& name, const std::vector<Tensor>& inputs, const Tensor& output,
                       nb::callable backward) {
  Tensor y = output.detach();
  const bool needed = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return requires_gradient(x); });
  if (!needed || !execution().recording) return y;
  record_always(lasting(name), inputs, y,
                [function = shared_callable(std::move(backward)), count = inputs.size()](const Tensor& dy) {
                  const nb::gil_scoped_acquire lock;
                  Gradients gradients;
                  for (const nb::handle g : (*function)(dy))
                    gradients.push_back(g.is_none() ? Tensor{} : nb::cast<Tensor>(g));
                  if (gradients.size() != count)
                    fail<ShapeError>("backward: returned {} gradients for {} inputs", gradients.size(), count);
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
      .def_ro("sum_negative_log_likelihood", &CrossEntropy::sum_negative_log_likelihood, "Neither smoothed nor scaled.")
      .def_ro("labels", &CrossEntropy::labels, "How many labels count.")
      .def_ro("correct", &CrossEntropy::correct, "How many of them have the largest logit.")
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
      "The mean cross entropy of labels [n] given logits [n, classes].");
}

}  // namespace

void bind_operations(nb::module_& m) {
  bind_settings(m);
  bind_loss(m);
  bind_unary(m, "relu", &relu, "max(0, x).");
  bind_unary(m, "gelu", &gelu, "x Phi(x).");
  bind_unary(m, "silu", &silu, "x sigmoid(x).");
  bind_unary(m, "tanh", &tanh, "Of each element.");
  bind_unary(m, "softmax", &softmax, "Over the last dimension.");
  bind_unary(m, "log_softmax", &log_softmax, "Over the last dimension.");
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
        return unlocked([&] { return linear(x, weight, bias.value_or(Tensor{})); });
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      "x weight^T + bias: x [..., in], weight [out, in], bias [out] -> [..., out].");
  m.def(
      "matmul",
      [](const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
        return unlocked([&] { return matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b}); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("transpose_a") = false, nb::arg("transpose_b") = false,
      "a [m, k] times b [k, n] -> [m, n].");
  m.def(
      "add", [](const Tensor& x, const Tensor& y) { return unlocked([&] { return residual_dropout(x, y); }); },
      nb::arg("x"), nb::arg("y"), "x + y, of one shape.");
  m.def(
      "layer_norm",
      [](const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
        return unlocked([&] { return layer_norm(x, weight, bias.value_or(Tensor{})); });
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      "Each row of x [..., d] with weight and bias [d].");
  m.def(
      "embedding",
      [](const std::vector<int32_t>& ids, const Tensor& table) {
        return unlocked([&] { return embedding(ids, table); });
      },
      nb::arg("ids"), nb::arg("table"), "Rows of a table [n, d]: ids [m] -> [m, d].");
  m.def(
      "gather",
      [](const Tensor& x, const std::vector<int32_t>& rows) { return unlocked([&] { return gather(x, rows); }); },
      nb::arg("x"), nb::arg("rows"), "Rows of x [n, d]: rows [m] -> [m, d]; zeros where a row is -1.");
  m.def("record", &record_function, nb::arg("name"), nb::arg("inputs"), nb::arg("output"), nb::arg("backward"),
        nb::sig("def record(name: str, inputs: collections.abc.Sequence[Tensor], output: Tensor, backward: "
                "collections.abc.Callable[[Tensor], collections.abc.Iterable[Tensor | None]]) -> Tensor"),
        R"(Makes a computation that something else did, NumPy say, a part of the graph.

`output` is what it computed of `inputs`. `backward` takes d(loss)/d(output) and returns d(loss)/d(input) for each
input, None where there is none. Returns the output as a differentiable tensor.)");
}

}  // namespace attune::python
