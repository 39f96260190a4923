// Built instead of mpi_transport.cpp if there is no MPI.

#include "attune/base/fail.h"
#include "attune/dist/mpi_transport.h"

namespace attune {

bool has_mpi() {
  return false;
}

std::unique_ptr<Transport> make_mpi_transport() {
  fail<ConfigError>("this attune was built without MPI (CMake: -DATTUNE_MPI=ON, package libopenmpi-dev)");
}

}  // namespace attune
