#pragma once
// Decides whether this process is one of several ranks.

#include <memory>

#include "attune/dist/communicator.h"

namespace attune {

/// Whether mpirun or a similar program started this process, judged by the environment variables that Open MPI, MPICH
/// and PMIx set.
bool started_by_mpi();

/// Returns a communicator over MPI if `ask_for_mpi` or started_by_mpi(), else a single rank that never calls MPI.
/// Throws ConfigError if MPI is needed and this build has none, since every process would be a run of its own;
/// CommunicationError.
std::unique_ptr<Communicator> make_communicator(bool ask_for_mpi = false);

}  // namespace attune
