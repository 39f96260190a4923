// See attune/optim/adam.h and schedule.h.

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/optim/adam.h"
#include "attune/optim/schedule.h"
#include "call.h"
#include "model.h"

namespace attune::python {
namespace {

template <class E>
E named(const char* field, const std::string& name) {
  std::string known;
  for (const auto& [value, text] : EnumNames<E>::values) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  fail<ConfigError>("{}: is \"{}\", needs one of {}", field, name, known);
}

/// Adam with what keeps the parameters alive: a model, or a dict of tensors.
struct PythonAdam {
  nb::object owner;
  std::vector<NamedParameter> parameters;
  std::unique_ptr<Adam> adam;
};

std::vector<NamedParameter> parameters_of(nb::handle owner) {
  if (nb::isinstance<PythonModel>(owner)) {
    Module& module = nb::cast<PythonModel&>(owner).module();
    require_gradients(module);
    return trained_parameters(module);
  }
  std::vector<NamedParameter> parameters;
  for (const auto [name, tensor] : nb::cast<nb::dict>(owner)) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<Tensor>(tensor))
      throw nb::type_error("Adam: parameters need to be a Model, or a dict of names and tensors");
    parameters.push_back({nb::cast<std::string>(name), &nb::cast<Tensor&>(tensor)});
    if (requires_gradient(*parameters.back().tensor)) continue;
    if (is_model_parameter(*parameters.back().tensor))  // a model may share it between several places, which its
                                                        // require_gradients() alone knows
      fail<ConfigError>(
          "Adam: {} is a model's parameter without a gradient: call the model's require_gradients() before",
          parameters.back().name);
    require_gradient(*parameters.back().tensor);
  }
  return parameters;
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  nb::class_<PythonAdam>(m, "Adam", R"(Adam and AdamW, over the parameters of a model or a dict of tensors.

Gradients are required of the parameters from then on; some of a model's parameters need its require_gradients() before.
Weight decay applies to matrices alone. Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2.

>>> weight = Tensor.zeros([1, 2])
>>> adam = Adam({"weight": weight})
>>> ops.linear(Tensor.zeros([3, 2]), weight).backward()
>>> adam.step(0.01)
0.0
>>> adam.steps
1
)")
      .def(
          "__init__",
          [](PythonAdam* self, const nb::object& parameters, const std::string& kind, double beta_1, double beta_2,
             double epsilon, double weight_decay, double clip_norm) {
            const OptimizerConfig config = {.kind = named<OptimizerKind>("kind", kind),
                                            .beta_1 = beta_1,
                                            .beta_2 = beta_2,
                                            .epsilon = epsilon,
                                            .weight_decay = weight_decay,
                                            .clip_norm = clip_norm};
            nb::object owner = parameters;
            if (!nb::isinstance<PythonModel>(owner))  // a copy: tensors that leave the dict must stay alive
              owner = nb::module_::import_("builtins").attr("dict")(owner);
            std::vector<NamedParameter> named_tensors = parameters_of(owner);
            auto adam = std::make_unique<Adam>(named_tensors, config);
            new (self) PythonAdam{owner, std::move(named_tensors), std::move(adam)};
          },
          nb::arg("parameters"), nb::kw_only(), nb::arg("kind") = "adam", nb::arg("beta_1") = 0.9,
          nb::arg("beta_2") = 0.98, nb::arg("epsilon") = 1e-9, nb::arg("weight_decay") = 0.0,
          nb::arg("clip_norm") = 0.0,
          nb::sig("def __init__(self, parameters: Model | dict[str, Tensor], *, kind: str = 'adam', beta_1: float = "
                  "0.9, beta_2: float = 0.98, epsilon: float = 1e-9, weight_decay: float = 0.0, clip_norm: float = "
                  "0.0) -> None"))
      .def(
          "step",
          [](PythonAdam& self, double learning_rate) {
            return unlocked([&] { return self.adam->step(learning_rate); });
          },
          nb::arg("learning_rate"),
          "One update from the gradients. Returns their global norm before clipping; where it is not finite, nothing "
          "has changed.")
      .def("clear_gradients",
           [](PythonAdam& self) {
             for (const NamedParameter& p : self.parameters) clear_gradient(*p.tensor);
           })
      .def_prop_ro("steps", [](const PythonAdam& self) { return self.adam->steps(); });
  m.def(
      "learning_rate",
      [](int64_t step, const std::string& kind, double peak, int64_t warmup_steps, int64_t total_steps,
         double final_learning_rate, int64_t d_model) {
        const ScheduleConfig schedule = {.kind = named<ScheduleKind>("kind", kind),
                                         .learning_rate = peak,
                                         .warmup_steps = warmup_steps,
                                         .final_learning_rate = final_learning_rate};
        return learning_rate(schedule, step, total_steps, d_model);
      },
      nb::arg("step"), nb::kw_only(), nb::arg("kind") = "noam", nb::arg("peak") = 0.0, nb::arg("warmup_steps") = 4000,
      nb::arg("total_steps") = 0, nb::arg("final_learning_rate") = 0.0, nb::arg("d_model") = 512,
      "The learning rate of a step, from 1: noam, inverse_sqrt, cosine, linear or constant, after a linear warm-up.");
}

}  // namespace attune::python
