#pragma once
// Subcommands that several processes run as one.

#include "attune/cli/command.h"
#include "attune/dist/communicator.h"

namespace attune::cli {

/// Runs `body`, as all ranks do, and returns its status. When it throws on one of several ranks, prints the message
/// with the rank, ends all ranks and returns 1. A single process throws what `body` throws.
int run_on_ranks(Communicator& communicator, const Body& body);

}  // namespace attune::cli
