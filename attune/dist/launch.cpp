#include "attune/dist/launch.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "attune/dist/mpi_transport.h"
#include "attune/dist/point_to_point_communicator.h"

namespace attune {

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name); size != nullptr) return std::string_view(size) != "1";
  constexpr const char* kRanks[] = {"PMI_RANK", "PMIX_RANK"};
  return std::ranges::any_of(kRanks, [](const char* name) { return std::getenv(name) != nullptr; });
}

std::unique_ptr<Communicator> make_communicator(bool ask_for_mpi) {
  if (!ask_for_mpi && !started_by_mpi()) return std::make_unique<LocalCommunicator>();
  return std::make_unique<PointToPointCommunicator>(make_mpi_transport);
}

}  // namespace attune
