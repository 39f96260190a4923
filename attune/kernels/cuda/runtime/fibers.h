#pragma once
// Stacks of their own for the threads of an emulated block: a thread stops in the middle and goes on later.

#include <csetjmp>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include <ucontext.h>

namespace attune::cuda {

/// Functions that take turns on the thread of the host that calls run(). Each host thread has one set, see instance().
class Fibers {
 public:
  /// The fibers of the calling thread.
  static Fibers& instance();

  Fibers() = default;
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  /// Prepares `count` fibers, of which each calls body(its number) when it runs first. Any that did not end are
  /// dropped.
  void start(int count, const std::function<void(int)>& body);
  /// Lets a fiber run until it calls pause() or its body ends. Throws what the body throws.
  void run(int fiber);
  /// Called in a fiber: returns to run().
  void pause();
  bool ended(int fiber) const { return fibers_[static_cast<size_t>(fiber)]->state == State::ended; }

 private:
  enum class State { fresh, idle, running, ended };
  struct Fiber {
    void* stack = nullptr;
    State state = State::fresh;
    ucontext_t context;
    jmp_buf place;
  };

  static void enter();
  void make(Fiber& fiber);
  void loop();

  std::vector<std::unique_ptr<Fiber>> fibers_;
  const std::function<void(int)>* body_ = nullptr;
  int current_ = 0;
  jmp_buf caller_;
  std::exception_ptr error_;
};

}  // namespace attune::cuda
