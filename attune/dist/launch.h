#pragma once
// Decides whether this process is one of several ranks.

#include <memory>
#include <optional>

#include "attune/dist/communicator.h"
#include "attune/dist/tcp_run.h"

namespace attune {

/// Whether mpirun or a similar program started this process, judged by the environment variables that Open MPI, MPICH
/// and PMIx set. False where they say that there is only one process.
bool started_by_mpi();

/// The run that the environment describes, as torchrun does: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Within a step
/// of Slurm's srun, where MASTER_ADDR is set, SLURM_PROCID and SLURM_STEP_NUM_TASKS stand in for RANK and WORLD_SIZE.
/// Rank 0 listens at ATTUNE_MASTER_PORT, else at MASTER_PORT, or at the port after it where torchrun itself listens
/// there (TORCHELASTIC_USE_AGENT_STORE). ATTUNE_RUN_TOKEN and ATTUNE_RENDEZVOUS_SECONDS are TcpRun's token and seconds.
/// A variable with an empty value counts as not set. Returns nothing where no size is set. Throws ConfigError naming
/// the variable that is missing or wrong.
std::optional<TcpRun> tcp_run_of_environment();

/// The number of this rank among those of its machine, from 0: LOCAL_RANK (torchrun), OMPI_COMM_WORLD_LOCAL_RANK
/// (mpirun), or SLURM_LOCALID within a step of srun, where all ranks have such a number and no two of a machine the
/// same one; else how many ranks before it name the same machine. All ranks call it. Throws ConfigError naming a
/// variable that is no number; CommunicationError.
int local_rank(Communicator& communicator);

/// Returns a communicator over MPI if `ask_for_mpi` or started_by_mpi(), else over TCP if tcp_run_of_environment() has
/// several ranks, else a single rank that never calls MPI. Where torchrun started this process, started_by_mpi() does
/// not count: mpirun or srun may have started torchrun. Nor does it in a build without MPI, where the environment
/// describes a run over TCP. Throws ConfigError if MPI is needed and this build has none, since every process would be
/// a run of its own, and as tcp_run_of_environment(); CommunicationError.
std::unique_ptr<Communicator> make_communicator(bool ask_for_mpi = false);

}  // namespace attune
