#include "attune/dist/launch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/parsed_number.h"
#include "attune/dist/mpi_transport.h"
#include "attune/dist/point_to_point_communicator.h"
#include "attune/dist/tcp_transport.h"

namespace attune {
namespace {

constexpr int64_t kMostRanks = 4096;  // each is connected with all others
constexpr int64_t kMostPort = 65535;

struct Variable {
  const char* name = "";
  std::string value;  // "": not set
};

Variable variable(const char* name) {
  const char* value = std::getenv(name);
  return {.name = name, .value = value != nullptr ? value : ""};
}

int64_t number_in(const Variable& v, int64_t least, int64_t most) {
  const std::optional<int64_t> number = parsed_number(v.value);
  if (!number || *number < least || *number > most)
    fail<ConfigError>("environment {} = \"{}\": needs a number from {} to {}", v.name, v.value, least, most);
  return *number;
}

// Torchrun's agent listens at MASTER_PORT for programs of PyTorch, which then do not listen themselves.
uint16_t port_of_first_rank() {
  if (const Variable own = variable("ATTUNE_MASTER_PORT"); !own.value.empty())
    return static_cast<uint16_t>(number_in(own, 1, kMostPort));
  const bool taken = variable("TORCHELASTIC_USE_AGENT_STORE").value == "True";
  const Variable given = variable("MASTER_PORT");
  const int64_t port = given.value.empty() ? TcpRun{}.port : number_in(given, 1, kMostPort - (taken ? 1 : 0));
  return static_cast<uint16_t>(port + (taken ? 1 : 0));
}

double seconds_of_rendezvous() {
  const Variable given = variable("ATTUNE_RENDEZVOUS_SECONDS");
  if (given.value.empty()) return TcpRun{}.seconds;
  const std::optional<float> seconds = parsed_real(given.value);
  if (!seconds || !(*seconds > 0))
    fail<ConfigError>("environment {} = \"{}\": needs a number above 0", given.name, given.value);
  return *seconds;
}

// Torchrun may be started by mpirun, and mpirun within a step of srun: the variables of the outer one are there too. A
// batch script of Slurm has SLURM_LOCALID, but is no task of a step.
std::optional<int> local_rank_of_environment() {
  std::vector<const char*> names = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"};
  if (!variable("SLURM_STEP_NUM_TASKS").value.empty()) names.push_back("SLURM_LOCALID");
  for (const char* name : names)
    if (const Variable given = variable(name); !given.value.empty())
      return static_cast<int>(number_in(given, 0, kMostRanks));
  return std::nullopt;
}

bool started_by_torchrun() {
  return !variable("TORCHELASTIC_RUN_ID").value.empty();
}

}  // namespace

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name); size != nullptr) return std::string_view(size) != "1";
  constexpr const char* kRanks[] = {"PMI_RANK", "PMIX_RANK"};
  return std::ranges::any_of(kRanks, [](const char* name) { return std::getenv(name) != nullptr; });
}

std::optional<TcpRun> tcp_run_of_environment() {
  const Variable address = variable("MASTER_ADDR");
  Variable rank = variable("RANK"), size = variable("WORLD_SIZE");
  // A batch script of Slurm is no task of a step, and has no SLURM_STEP_NUM_TASKS.
  const Variable slurm_size = variable("SLURM_STEP_NUM_TASKS");
  if (!address.value.empty() && !slurm_size.value.empty()) {
    if (rank.value.empty()) rank = variable("SLURM_PROCID");
    if (size.value.empty()) size = slurm_size;
  }
  if (size.value.empty()) return std::nullopt;
  TcpRun run;
  run.size = static_cast<int>(number_in(size, 1, kMostRanks));
  if (!rank.value.empty()) run.rank = static_cast<int>(number_in(rank, 0, run.size - 1));
  if (run.size == 1) return run;
  if (rank.value.empty()) fail<ConfigError>("environment {} = {}: needs RANK, which is not set", size.name, run.size);
  if (address.value.empty())
    fail<ConfigError>("environment {} = {}: needs MASTER_ADDR, the machine of rank 0, which is not set", size.name,
                      run.size);
  run.address = address.value;
  run.port = port_of_first_rank();
  run.token = variable("ATTUNE_RUN_TOKEN").value;
  run.seconds = seconds_of_rendezvous();
  return run;
}

int local_rank(Communicator& communicator) {
  struct Place {
    std::array<char, 256> machine{};  // its name
    int number = -1;                  // from the environment; -1: none
  };
  Place mine;
  ::gethostname(mine.machine.data(), mine.machine.size() - 1);
  mine.number = local_rank_of_environment().value_or(-1);
  const std::vector<Place> all = communicator.all_gather_values(mine);
  std::set<std::pair<std::array<char, 256>, int>> given;
  for (const Place& place : all)
    if (place.number >= 0) given.emplace(place.machine, place.number);
  if (given.size() == all.size()) return mine.number;
  const auto before = all.begin() + communicator.rank();
  return static_cast<int>(
      std::count_if(all.begin(), before, [&](const Place& place) { return place.machine == mine.machine; }));
}

std::unique_ptr<Communicator> make_communicator(bool ask_for_mpi) {
  const bool mpi = ask_for_mpi || (started_by_mpi() && has_mpi() && !started_by_torchrun());
  if (!mpi) {
    const std::optional<TcpRun> run = tcp_run_of_environment();
    if (run && run->size > 1)
      return std::make_unique<PointToPointCommunicator>([&run] { return make_tcp_transport(*run); });
    if (run || !started_by_mpi()) return std::make_unique<LocalCommunicator>();
  }
  return std::make_unique<PointToPointCommunicator>(make_mpi_transport);
}

}  // namespace attune
