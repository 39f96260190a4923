#pragma once
// How a process comes to be one of several.

#include <memory>

#include "attune/dist/communicator.h"

namespace attune {

/// Whether the environment is that of a process which mpirun or the like has started, by the variables that Open MPI,
/// MPICH and PMIx set.
bool started_by_mpi();

/// MPI where it is asked for or this process was started by it, else one rank alone; MPI is then never touched. Throws
/// ConfigError where MPI is needed and this build has none: every process would be a run of its own.
/// CommunicationError.
std::unique_ptr<Communicator> make_communicator(bool ask_for_mpi = false);

}  // namespace attune
