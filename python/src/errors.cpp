#include "call.h"

#include "attune/base/error.h"
#include "attune/base/interrupt.h"

namespace attune::python {

// An error is also what Python calls such an error, so that `except ValueError` catches a bad option.
void bind_errors(nb::module_& m) {
  const nb::exception<Error> error(m, "Error");
  const auto with = [&](PyObject* standard) { return nb::make_tuple(error, nb::handle(standard)); };
  nb::exception<ShapeError>(m, "ShapeError", with(PyExc_ValueError));
  nb::exception<ConfigError>(m, "ConfigError", with(PyExc_ValueError));
  nb::exception<FileError>(m, "FileError", with(PyExc_OSError));
  nb::exception<DataError>(m, "DataError", with(PyExc_ValueError));
  nb::exception<NumericError>(m, "NumericError", with(PyExc_ArithmeticError));
  nb::exception<CommunicationError>(m, "CommunicationError", with(PyExc_ConnectionError));
  nb::exception<Interrupted>(m, "Interrupted");
  constexpr std::pair<const char*, const char*> kMeanings[] = {
      {"Error", "All errors of Attune but Interrupted."},
      {"ShapeError", "Tensors do not fit together."},
      {"ConfigError", "A configuration or an option is not possible."},
      {"FileError", "A file cannot be read, written or understood."},
      {"DataError", "A text or its tokens cannot be used."},
      {"NumericError", "A number is not finite."},
      {"CommunicationError", "Another process cannot be reached."},
      {"Interrupted", "A call ended because its interrupt was set."},
  };
  for (const auto& [name, meaning] : kMeanings) m.attr(name).attr("__doc__") = meaning;
}

}  // namespace attune::python
