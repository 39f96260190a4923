#pragma once
// Messages over TCP, between ranks that were started without MPI.

#include <memory>

#include "attune/dist/tcp_run.h"
#include "attune/dist/transport.h"

namespace attune {

/// Connects this rank with all others (connect_ranks()) and throws what that throws. One thread at a time may exchange.
/// What is sent is neither encrypted nor signed: for networks in which nobody else sends.
///
/// When a rank leaves, by abort() or because its process ends, exchanges of the others throw CommunicationError naming
/// it; who learns of it passes it on. abort() does not end the process.
std::unique_ptr<Transport> make_tcp_transport(const TcpRun& run);

}  // namespace attune
