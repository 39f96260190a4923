#pragma once
// Messages through MPI.

#include <memory>

#include "attune/dist/transport.h"

namespace attune {

/// Whether this build has MPI.
bool has_mpi();

/// Initialises MPI on the calling thread, which alone may use and has to destroy what is returned; that finalises MPI.
/// Once in a process. Throws CommunicationError naming the MPI call that failed, and ConfigError without MPI.
std::unique_ptr<Transport> make_mpi_transport();

}  // namespace attune
