#pragma once
// Messages between two ranks: all that the collective operations of PointToPointCommunicator ask of a network.

#include <cstddef>
#include <span>

namespace attune {

class Transport {
 public:
  static constexpr int kNobody = -1;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `out` to one rank and receives `in`, of just the size that is sent, from one, both at the same time; either
  /// may be kNobody. Messages between two ranks arrive in the order in which they were sent. Throws CommunicationError.
  virtual void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) = 0;
  /// See Communicator. May be called on any thread, while exchange() is at work.
  virtual void abort(int status) = 0;
};

}  // namespace attune
