#pragma once
// Collective operations out of messages between two ranks. Who adds what to what, and in which order, is a function of
// rank, size and count alone. Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication
// Operations in MPICH".

#include <vector>

#include "attune/dist/communicator.h"
#include "attune/dist/transport.h"

namespace attune {

/// Contracts as at Communicator::start_*. Each rank sends (size - 1) / size of x in log2(size) messages where size is a
/// power of two (recursive halving, and doubling back), else in size - 1 (a ring). `scratch` is kept for the next call.
void reduce_scatter(Transport& transport, Numbers x, std::vector<std::byte>& scratch);
void all_gather(Transport& transport, Numbers x);
/// Bruck's algorithm: log2(size) messages, rounded up, for any size.
void all_gather_bytes(Transport& transport, std::span<const std::byte> mine, std::span<std::byte> all);
/// A binomial tree.
void broadcast(Transport& transport, std::span<std::byte> x, int root);
std::vector<std::vector<std::byte>> gather(Transport& transport, std::span<const std::byte> mine, int root);

}  // namespace attune
