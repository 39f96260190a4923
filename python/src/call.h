#pragma once
// What all bindings share: calls that do not hold Python's lock and can be interrupted, and options as JSON.

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/json.h"
#include "attune/base/json_fields.h"

namespace nb = nanobind;

namespace attune::python {

/// Ends calls from another thread. Python has it as attune.Interrupt.
struct Interrupt {
  std::atomic<bool> flag = false;
};

/// Counts the calls in progress, and gives the signal handlers of the calling thread a stack of their own. Throws Error
/// in a process that was forked while another call was in progress: locks that this call held will never be released.
class CallScope {
 public:
  CallScope();
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
};

/// Holds the lock of Python while a call runs a function of Python. A worker's thread, which blocks signals, takes them
/// meanwhile: a process that the function starts would inherit what is blocked.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  nb::gil_scoped_acquire lock_;
  sigset_t before_{};
};

/// Calls the body without the lock of Python, on this thread, and returns what it returns.
template <class Body>
auto unlocked(Body&& body) {
  const nb::gil_scoped_release released;
  const CallScope scope;
  return body();
}

/// The same for long work. On Python's main thread the body runs on another thread, with the Execution of the caller,
/// while this one looks for signals: after Ctrl-C it sets `interrupt`, waits for the body and throws KeyboardInterrupt.
/// The other thread waits for the next call: its memory and its team of threads are then there already.
void run_interruptible(std::atomic<bool>& interrupt, const std::function<void()>& body);

template <class Body>
auto interruptible(const std::shared_ptr<Interrupt>& given, Body&& body) {
  Interrupt own;
  std::atomic<bool>& flag = given ? given->flag : own.flag;
  std::optional<decltype(body(&flag))> result;
  run_interruptible(flag, [&] { result.emplace(body(&flag)); });
  return std::move(*result);
}

/// A dict, list, number, string, bool, None or path as JSON, and back. Throws ConfigError for anything else, integers
/// of more than 64 bits too.
Json json_of(nb::handle object);
nb::object object_of(const Json& json);

/// A text as Python writes it in a program, for __repr__.
std::string shown(const std::string& text);

/// The names of the options that a struct of fields has.
template <class Fields>
std::vector<std::string> option_names(const Fields& fields) {
  std::vector<std::string> names;
  const Json json = write_fields(fields);
  for (const auto& [name, value] : json.items()) names.push_back(name);
  return names;
}

/// A Python function for code without Python's lock: dropping the last copy takes the lock. Calls need a CallbackScope.
std::shared_ptr<nb::callable> shared_callable(nb::callable function);

/// Calls `function` with the lock of Python; an empty function for None.
template <class... Arguments>
std::function<void(Arguments...)> locked(std::optional<nb::callable> function) {
  if (!function) return {};
  return [shared = shared_callable(std::move(*function))](Arguments... arguments) {
    const CallbackScope scope;
    (*shared)(std::forward<Arguments>(arguments)...);
  };
}

// One function for each file of bindings.
void bind_errors(nb::module_& m);
void bind_calls(nb::module_& m);
void bind_command_line(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_operations(nb::module_& m);
void bind_tokenizer(nb::module_& m);
void bind_model(nb::module_& m);
void bind_optimizer(nb::module_& m);
void bind_translator(nb::module_& m);
void bind_text_generator(nb::module_& m);
void bind_classifier(nb::module_& m);
void bind_embedder(nb::module_& m);
void bind_trainer(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_pictures(nb::module_& m);

}  // namespace attune::python
