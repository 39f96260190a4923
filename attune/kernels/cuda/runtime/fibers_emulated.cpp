#include <sys/mman.h>

#include <new>
#include <utility>

#include "attune/kernels/cuda/runtime/fibers.h"

// setcontext enters a new stack once; after that _longjmp changes stacks, since swapcontext calls the system each time.

namespace attune::cuda {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuardBytes = size_t{4} << 10;  // a stack that overflows crashes

}  // namespace

Fibers& Fibers::instance() {
  thread_local Fibers fibers;
  return fibers;
}

Fibers::~Fibers() {
  for (const auto& fiber : fibers_)
    if (fiber->stack != nullptr) munmap(fiber->stack, kStackBytes);
}

void Fibers::make(Fiber& fiber) {
  if (fiber.stack == nullptr) {
    void* const stack =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
    if (stack == MAP_FAILED) throw std::bad_alloc();
    mprotect(stack, kGuardBytes, PROT_NONE);
    fiber.stack = stack;
  }
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &Fibers::enter, 0);
  fiber.state = State::fresh;
}

void Fibers::start(int count, const std::function<void(int)>& body) {
  while (fibers_.size() < static_cast<size_t>(count)) {
    auto fiber = std::make_unique<Fiber>();
    make(*fiber);
    fibers_.push_back(std::move(fiber));
  }
  body_ = &body;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    Fiber& fiber = *fibers_[i];
    if (fiber.state == State::running) make(fiber);  // was dropped in the middle
    if (fiber.state == State::ended) fiber.state = State::idle;
  }
}

void Fibers::enter() {
  instance().loop();
}

// A fiber waits here between two bodies.
void Fibers::loop() {
  for (;;) {
    try {
      (*body_)(current_);
    } catch (...) {
      error_ = std::current_exception();
    }
    fibers_[static_cast<size_t>(current_)]->state = State::ended;
    pause();
  }
}

void Fibers::run(int number) {
  current_ = number;
  if (_setjmp(caller_) == 0) {
    Fiber& fiber = *fibers_[static_cast<size_t>(current_)];
    const bool fresh = fiber.state == State::fresh;
    fiber.state = State::running;
    if (fresh) setcontext(&fiber.context);
    _longjmp(fiber.place, 1);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fibers::pause() {
  if (_setjmp(fibers_[static_cast<size_t>(current_)]->place) == 0) _longjmp(caller_, 1);
}

}  // namespace attune::cuda
