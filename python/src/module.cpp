#include "attune/base/version.h"
#include "call.h"

NB_MODULE(_core, m) {
  using namespace attune::python;
  nb::set_leak_warnings(false);  // a program may end with models that it still has
  m.doc() = "The bindings below the package attune.";
  m.attr("version") = std::string(attune::version());
  bind_errors(m);
  bind_calls(m);
  bind_tensor(m);
  bind_operations(m);
  bind_tokenizer(m);
  bind_model(m);
  bind_optimizer(m);
  bind_translator(m);
  bind_text_generator(m);
  bind_classifier(m);
  bind_embedder(m);
  bind_trainer(m);
  bind_metrics(m);
  bind_pictures(m);
  bind_command_line(m);
}
