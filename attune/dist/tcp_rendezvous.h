#pragma once

#include <vector>

#include "attune/base/descriptor.h"
#include "attune/dist/tcp_run.h"

namespace attune {

/// Connects every two ranks of a run: the result has the connection with rank r at r, and none at run.rank. Rank 0
/// listens at run.address and run.port, the others at the address of their own by which they reach it, at a port that
/// is free there; each tells rank 0 its port and is told those of the others. A rank calls the lower ones and is called
/// by the higher ones.
///
/// Throws ConfigError naming an address or time that cannot be, and CommunicationError: by whom this rank is refused
/// and why, or at the end of the time, who is missing.
std::vector<Descriptor> connect_ranks(const TcpRun& run);

}  // namespace attune
