#pragma once
// Sums and gathers of a network's own library, such as MPI's, beside its messages.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "attune/dist/communicator.h"

namespace attune {

/// The contracts are those of Communicator::start_* with Algorithm::of_network, for at most kMostNumbers numbers.
/// `scratch` is memory that later calls use again. All throw CommunicationError.
class NetworkCollectives {
 public:
  static constexpr int64_t kMostNumbers = std::numeric_limits<int>::max();  // MPI counts with int

  virtual ~NetworkCollectives() = default;
  virtual void all_reduce(const Numbers& x, std::vector<std::byte>& scratch) = 0;
  virtual void reduce_scatter(const Numbers& x, std::vector<std::byte>& scratch) = 0;
  virtual void all_gather(const Numbers& x) = 0;
};

}  // namespace attune
