#pragma once
// What a process takes of the machine, as Linux tells it.

#include <cstdint>

namespace attune::cli {

struct ProcessUsage {
  double processor_seconds = 0;  // of all its threads, in its own code and in the system's
  int64_t memory_bytes = 0;      // resident
  int64_t descriptors = 0;       // open files and sockets
};

/// Throws Error where there is no such process, or where it belongs to somebody else.
ProcessUsage process_usage(int64_t process);

/// The processor seconds of this process.
double own_processor_seconds();

}  // namespace attune::cli
