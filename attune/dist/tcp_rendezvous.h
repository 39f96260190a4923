#pragma once

#include <vector>

#include "attune/base/descriptor.h"
#include "attune/dist/tcp_run.h"

namespace attune {

/// Connects every two ranks of a run: the result has the connection with rank r at r, and none at run.rank. Rank 0
/// listens at run.address and run.port, the others at the address of their own by which they reach it, at a port that
/// is free there; each tells rank 0 its port and is told those of the others. A rank connects to the lower ranks, and
/// the higher ones connect to it.
///
/// Throws ConfigError naming an address or a time that is not valid, and CommunicationError, which says who refused
/// this rank and why or, at the end of the time, which ranks are missing.
std::vector<Descriptor> connect_ranks(const TcpRun& run);

}  // namespace attune
