#include "attune/cli/run.h"
#include "call.h"

namespace attune::python {

void bind_command_line(nb::module_& m) {
  m.def(
      "run_command_line",
      [](const std::vector<nb::bytes>& arguments) {
        std::vector<std::string> words;  // in any encoding
        for (const nb::bytes& argument : arguments) words.emplace_back(argument.c_str(), argument.size());
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        const nb::gil_scoped_release released;
        return cli::run(static_cast<int>(words.size()), argv.data());
      },
      nb::arg("arguments"),
      "The program `attune` with its arguments, the first of which is its name; its exit status.");
}

}  // namespace attune::python
