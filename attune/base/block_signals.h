#pragma once

#include <signal.h>

namespace attune {

/// Blocks in the calling thread the signals that are sent to the process. Code that the matrix library generates uses
/// the stack pointer as an ordinary register: a signal handler that ran in the middle of it would write over other
/// memory. Signals of the thread's own faults (SIGSEGV and the like) stay as they are. Returns the signals that the
/// thread blocked before.
inline sigset_t block_signals() {
  sigset_t signals, before;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&signals, fault);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  return before;
}

}  // namespace attune
