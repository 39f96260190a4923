#include "attune/cli/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>

namespace attune::cli {
namespace {

// Prints why this rank has failed, and ends the other ranks, which wait for it. When all ranks fail alike, rank 0 shall
// be the first to print: the others wait a second. Over MPI they have been ended by then, over TCP they print too.
int end_all_ranks(Communicator& communicator, const std::string& message) {
  if (communicator.rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  const int status = report(fmt::format("rank {}: {}", communicator.rank(), message));
  communicator.abort(status);
  return status;
}

}  // namespace

int run_on_ranks(Communicator& communicator, const Body& body) {
  if (communicator.size() == 1) return body();
  try {
    return body();
  } catch (const std::bad_alloc& error) {
    return end_all_ranks(communicator, out_of_memory_text(error));
  } catch (const std::exception& error) {
    return end_all_ranks(communicator, error.what());
  }
}

}  // namespace attune::cli
