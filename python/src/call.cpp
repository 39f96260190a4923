#include "call.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"

namespace attune::python {
namespace {

std::atomic<int64_t> calls_in_progress{0};
std::atomic<bool> forked_during_call{false};

bool on_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
}

/// The end of work that another thread does.
class Completion {
 public:
  void finish(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_ = true;
    changed_.notify_all();
  }
  bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return done_; });
  }
  const std::exception_ptr& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
};

std::exception_ptr error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

CallScope::CallScope() {
  if (forked_during_call)
    fail<Error>(
        "this process was forked while another thread was in a call of Attune, whose locks it has kept: start "
        "processes before such calls, or with multiprocessing's method \"spawn\"");
  ++calls_in_progress;
}

CallScope::~CallScope() {
  --calls_in_progress;
}

void run_interruptible(std::atomic<bool>& interrupt, const std::function<void()>& body) {
  constexpr std::chrono::milliseconds kBetweenSignals{20};
  if (!on_main_thread()) return unlocked(body);
  const CallScope scope;
  Completion completion;
  std::exception_ptr signalled;
  {
    const nb::gil_scoped_release released;
    std::thread worker([&, outer = execution()] {
      const ExecutionScope same([&](Execution& e) { e = outer; });
      completion.finish(error_of(body));
    });
    while (!completion.wait(kBetweenSignals)) {
      const nb::gil_scoped_acquire lock;
      if (signalled || PyErr_CheckSignals() == 0) continue;
      signalled = std::make_exception_ptr(nb::python_error());
      interrupt = true;
    }
    worker.join();
  }
  if (signalled) std::rethrow_exception(signalled);
  if (completion.error()) std::rethrow_exception(completion.error());
}

Json json_of(nb::handle object) {
  if (object.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) return nb::cast<int64_t>(object);
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (nb::isinstance<nb::dict>(object)) {
    Json json = Json::object();
    for (const auto [key, value] : nb::cast<nb::dict>(object))
      json[nb::cast<std::string>(nb::str(key))] = json_of(value);
    return json;
  }
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Json json = Json::array();
    for (const nb::handle element : object) json.push_back(json_of(element));
    return json;
  }
  if (nb::hasattr(object, "__index__")) return nb::cast<int64_t>(object.attr("__index__")());  // NumPy's numbers
  if (nb::hasattr(object, "__float__")) return nb::cast<double>(object.attr("__float__")());
  if (nb::hasattr(object, "__fspath__")) return nb::cast<std::string>(object.attr("__fspath__")());
  fail<ConfigError>("{} is no number, string, list or dict", nb::cast<std::string>(nb::repr(object)));
}

nb::object object_of(const Json& json) {
  if (json.is_boolean()) return nb::bool_(json.get<bool>());
  if (json.is_number_unsigned()) return nb::int_(json.get<uint64_t>());
  if (json.is_number_integer()) return nb::int_(json.get<int64_t>());
  if (json.is_number()) return nb::float_(json.get<double>());
  if (json.is_string()) return nb::str(json.get<std::string>().c_str());
  if (json.is_array()) {
    nb::list list;
    for (const Json& element : json) list.append(object_of(element));
    return list;
  }
  if (json.is_object()) {
    nb::dict dict;
    for (const auto& [key, value] : json.items()) dict[key.c_str()] = object_of(value);
    return dict;
  }
  return nb::none();
}

void bind_calls(nb::module_& m) {
  ::pthread_atfork(nullptr, nullptr, [] {
    if (calls_in_progress > 0) forked_during_call = true;
    calls_in_progress = 0;
  });
  nb::class_<Interrupt>(m, "Interrupt", "Ends calls that were given it, from another thread.")
      .def(nb::init<>())
      .def(
          "set", [](Interrupt& self) { self.flag = true; }, "Ends the calls within a step of their work.")
      .def("is_set", [](const Interrupt& self) { return self.flag.load(); });
  m.def("thread_count", &thread_count, "The number of threads that calls of this thread work with.");
}

}  // namespace attune::python
