#pragma once
// Collective operations made of messages between two ranks. The order of all additions depends only on rank, size and
// count. Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in MPICH".

#include <vector>

#include "attune/dist/communicator.h"
#include "attune/dist/transport.h"

namespace attune {

/// The contracts are those of Communicator::start_*. Each rank sends (size - 1) / size of x: in log2(size) messages if
/// size is a power of two (recursive halving, then doubling), else in size - 1 (a ring). `scratch` is memory that later
/// calls use again.
void reduce_scatter(Transport& transport, Numbers x, std::vector<std::byte>& scratch);
void all_gather(Transport& transport, Numbers x);
/// Bruck's algorithm: log2(size) messages, rounded up, for any size.
void all_gather_bytes(Transport& transport, std::span<const std::byte> mine, std::span<std::byte> all);
/// A binomial tree.
void broadcast(Transport& transport, std::span<std::byte> x, int root);
std::vector<std::vector<std::byte>> gather(Transport& transport, std::span<const std::byte> mine, int root);

}  // namespace attune
