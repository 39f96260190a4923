#pragma once

#include <signal.h>

namespace attune {

/// Blocks signals to the process in the calling thread: what handles them might run in the middle of code that the
/// matrix library generates, which keeps numbers in the register of the stack, and would write over other memory.
/// Signals of faults of the thread itself stay as they are. Returns what the thread blocked before.
inline sigset_t block_signals() {
  sigset_t signals, before;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&signals, fault);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  return before;
}

}  // namespace attune
