#pragma once
// Messages through MPI, and its own sums.

#include <memory>

#include "attune/dist/transport.h"

namespace attune {

/// Whether this build has MPI.
bool has_mpi();

/// Initialises MPI. Only the calling thread may use the result, and it must destroy it, which finalises MPI. Call this
/// once per process. Its collectives() are MPI_Iallreduce, MPI_Ireduce_scatter and MPI_Iallgatherv. Throws
/// CommunicationError naming the MPI call that failed, and ConfigError without MPI.
std::unique_ptr<Transport> make_mpi_transport();

}  // namespace attune
