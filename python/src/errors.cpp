#include "call.h"

#include <string_view>

#include "attune/base/error.h"
#include "attune/base/interrupt.h"

namespace attune::python {
namespace {

template <class E>
nb::object bind_error(nb::module_& m, const char* name, nb::handle base = PyExc_Exception) {
  const nb::exception<E> error(m, name, base);
  // Before nanobind's own translator, which makes a UnicodeDecodeError of a message that names a file by other bytes.
  const auto translate = [](const std::exception_ptr& thrown, void* type) {
    try {
      std::rethrow_exception(thrown);
    } catch (const E& e) {
      const std::string_view what = e.what();
      const auto bytes = static_cast<Py_ssize_t>(what.size());
      const nb::object message = nb::steal(PyUnicode_DecodeUTF8(what.data(), bytes, "replace"));
      if (message.is_valid()) PyErr_SetObject(static_cast<PyObject*>(type), message.ptr());
    }
  };
  nb::register_exception_translator(translate, error.ptr());
  return error;
}

}  // namespace

// An error is also what Python calls such an error, so that `except ValueError` catches a bad option.
void bind_errors(nb::module_& m) {
  const nb::object error = bind_error<Error>(m, "Error");
  const auto with = [&](PyObject* standard) { return nb::make_tuple(error, nb::handle(standard)); };
  bind_error<ShapeError>(m, "ShapeError", with(PyExc_ValueError));
  bind_error<ConfigError>(m, "ConfigError", with(PyExc_ValueError));
  bind_error<FileError>(m, "FileError", with(PyExc_OSError));
  bind_error<DataError>(m, "DataError", with(PyExc_ValueError));
  bind_error<NumericError>(m, "NumericError", with(PyExc_ArithmeticError));
  bind_error<CommunicationError>(m, "CommunicationError", with(PyExc_ConnectionError));
  bind_error<Interrupted>(m, "Interrupted");
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
