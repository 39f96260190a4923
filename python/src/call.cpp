#include "call.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "attune/base/block_signals.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"

namespace attune::python {
namespace {

std::atomic<int64_t> calls_in_progress{0};
std::atomic<bool> forked_during_call{false};

// In a worker's thread: the signals that it blocks while it calls Python. Null in all other threads.
thread_local const sigset_t* signals_of_python = nullptr;

bool on_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
}

std::exception_ptr error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// A thread that runs one body after another, without signals. It never ends; the process may end while it waits for
/// the next body.
class Worker {
 public:
  Worker() {
    std::thread([this] { work(); }).detach();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The body has to live until wait() returns true.
  void start(const std::function<void()>& body) {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    changed_.notify_all();
  }
  /// Whether the body ends within this time.
  bool wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return body_ == nullptr; });
  }
  /// What the last body threw; null: nothing.
  std::exception_ptr take_error() { return std::exchange(error_, nullptr); }

 private:
  void work() {
    const sigset_t before = block_signals();
    signals_of_python = &before;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return body_ != nullptr; });
      lock.unlock();
      error_ = error_of(*body_);
      lock.lock();
      body_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* body_ = nullptr;
  std::exception_ptr error_;
};

// The workers that are at rest. Only the main thread uses them, while it has the lock of Python. There are several only
// if a signal's handler made a call during a call. They are never destroyed.
std::vector<Worker*>& idle_workers() {
  static auto& workers = *new std::vector<Worker*>;
  return workers;
}

Worker& take_worker() {
  std::vector<Worker*>& idle = idle_workers();
  if (idle.empty()) return *new Worker;
  Worker& worker = *idle.back();
  idle.pop_back();
  return worker;
}

// `depth`: how many lists and dicts it is in. A list may have itself as an element.
Json json_within(nb::handle object, int depth) {
  constexpr int kMostDepth = JsonLimits{}.depth;
  if (depth > kMostDepth) fail<ConfigError>("a list or dict is nested more than {} levels deep", kMostDepth);
  if (object.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) {
    if (int64_t number = 0; nb::try_cast(object, number)) return number;
    if (uint64_t number = 0; nb::try_cast(object, number)) return number;
    fail<ConfigError>("{} has more than 64 bits", nb::cast<std::string>(nb::repr(object)));
  }
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (std::string text; nb::isinstance<nb::str>(object) && nb::try_cast(object, text)) return text;
  if (nb::isinstance<nb::dict>(object)) {
    Json json = Json::object();
    for (const auto [key, value] : nb::cast<nb::dict>(object))
      json[nb::cast<std::string>(nb::str(key))] = json_within(value, depth + 1);
    return json;
  }
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    Json json = Json::array();
    for (const nb::handle element : object) json.push_back(json_within(element, depth + 1));
    return json;
  }
  if (nb::hasattr(object, "__index__")) return json_within(object.attr("__index__")(), depth + 1);  // NumPy's numbers
  if (nb::hasattr(object, "__float__")) return nb::cast<double>(object.attr("__float__")());
  if (nb::hasattr(object, "__fspath__")) return json_within(object.attr("__fspath__")(), depth + 1);
  fail<ConfigError>("{} is no number, string, list or dict", nb::cast<std::string>(nb::repr(object)));
}

/// Gives the signal handlers of this thread a stack of their own until the thread ends. Python's handlers use it
/// (SA_ONSTACK). A stack that the thread has already, of Python's faulthandler or of a sanitizer, stays.
class SignalStack {
 public:
  SignalStack() {
    stack_t stack{};
    if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
    stack.ss_size = static_cast<size_t>(std::max(::sysconf(_SC_SIGSTKSZ), 128L << 10));
    memory_.reset(new char[stack.ss_size]);
    stack.ss_sp = memory_.get();
    stack.ss_flags = 0;
    if (::sigaltstack(&stack, nullptr) != 0) memory_.reset();
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
  ~SignalStack() {
    stack_t stack{};
    if (memory_ == nullptr || ::sigaltstack(nullptr, &stack) != 0) return;
    if (stack.ss_sp != memory_.get()) {  // somebody put another in its place, and may put this one back
      static_cast<void>(memory_.release());
      return;
    }
    stack.ss_flags = SS_DISABLE;
    if (::sigaltstack(&stack, nullptr) != 0) static_cast<void>(memory_.release());  // a handler ends the thread
  }

 private:
  std::unique_ptr<char[]> memory_;  // null: the thread had a stack
};

// The calling thread may run code of the matrix library that keeps numbers in the stack pointer's register: a handler
// on the thread's own stack would then write over other memory.
void give_signals_a_stack() {
  static thread_local const SignalStack stack;  // made by the thread's first call
  static_cast<void>(stack);
}

}  // namespace

CallScope::CallScope() {
  give_signals_a_stack();
  if (forked_during_call)
    fail<Error>(
        "this process was forked while another thread was in a call of Attune, whose locks it has kept: start "
        "processes before such calls, or with multiprocessing's method \"spawn\"");
  ++calls_in_progress;
}

CallScope::~CallScope() {
  --calls_in_progress;
}

CallbackScope::CallbackScope() {
  if (signals_of_python != nullptr) ::pthread_sigmask(SIG_SETMASK, signals_of_python, &before_);
}

CallbackScope::~CallbackScope() {
  if (signals_of_python != nullptr) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void run_interruptible(std::atomic<bool>& interrupt, const std::function<void()>& body) {
  constexpr std::chrono::milliseconds kBetweenSignals{20};
  if (!on_main_thread()) return unlocked(body);
  const CallScope scope;
  Worker& worker = take_worker();
  const std::function<void()> alike = [&, outer = execution()] {
    const ExecutionScope same([&](Execution& e) { e = outer; });
    body();
  };
  std::exception_ptr signalled;
  {
    const nb::gil_scoped_release released;
    worker.start(alike);
    while (!worker.wait(kBetweenSignals)) {
      const nb::gil_scoped_acquire lock;
      if (signalled || PyErr_CheckSignals() == 0) continue;
      signalled = std::make_exception_ptr(nb::python_error());
      interrupt = true;
    }
  }
  const std::exception_ptr error = worker.take_error();
  idle_workers().push_back(&worker);
  if (signalled) std::rethrow_exception(signalled);
  if (error) std::rethrow_exception(error);
}

std::shared_ptr<nb::callable> shared_callable(nb::callable function) {
  return {new nb::callable(std::move(function)), [](nb::callable* callable) {
            const nb::gil_scoped_acquire lock;
            delete callable;
          }};
}

Json json_of(nb::handle object) {
  return json_within(object, 0);
}

nb::object object_of(const Json& json) {
  if (json.is_boolean()) return nb::bool_(json.get<bool>());
  if (json.is_number_unsigned()) return nb::int_(json.get<uint64_t>());
  if (json.is_number_integer()) return nb::int_(json.get<int64_t>());
  if (json.is_number()) return nb::float_(json.get<double>());
  if (json.is_string()) return nb::cast(json.get<std::string>());
  if (json.is_array()) {
    nb::list list;
    for (const Json& element : json) list.append(object_of(element));
    return list;
  }
  if (json.is_object()) {
    nb::dict dict;
    for (const auto& [key, value] : json.items()) dict[nb::cast(key)] = object_of(value);
    return dict;
  }
  return nb::none();
}

std::string shown(const std::string& text) {
  return nb::cast<std::string>(nb::repr(nb::cast(text)));
}

void bind_calls(nb::module_& m) {
  ::pthread_atfork(nullptr, nullptr, [] {
    if (calls_in_progress > 0) forked_during_call = true;
    calls_in_progress = 0;
    idle_workers().clear();  // their threads are the parent's
  });
  nb::class_<Interrupt>(m, "Interrupt", R"(Ends calls that were given it, from another thread.

>>> interrupt = Interrupt()
>>> interrupt.set()
>>> interrupt.is_set()
True
)")
      .def(nb::init<>())
      .def(
          "set", [](Interrupt& self) { self.flag = true; }, "Ends the calls within a step of their work.")
      .def("is_set", [](const Interrupt& self) { return self.flag.load(); });
  m.def("thread_count", &thread_count, "The number of threads that calls of this thread work with.");
}

}  // namespace attune::python
