#include "attune/cli/run.h"
#include "call.h"

namespace attune::python {

void bind_command_line(nb::module_& m) {
  m.def(
      "run_command_line",
      [](std::vector<std::string> arguments) {
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        const nb::gil_scoped_release released;
        return cli::run(static_cast<int>(arguments.size()), argv.data());
      },
      nb::arg("arguments"),
      "The program `attune` with its arguments, the first of which is its name; its exit status.");
}

}  // namespace attune::python
