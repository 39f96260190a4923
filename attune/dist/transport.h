#pragma once
// Messages between two ranks: all that PointToPointCommunicator needs of a network.

#include <cstddef>
#include <span>

namespace attune {

class NetworkCollectives;

class Transport {
 public:
  static constexpr int kNobody = -1;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `out` to rank `to` and at the same time receives `in` from rank `from`; either rank may be kNobody. `in` has
  /// exactly the size that is sent. Messages between two ranks arrive in the order sent. Throws CommunicationError.
  virtual void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) = 0;
  /// The collective operations of the network's own library; null: it has none. For the thread that exchanges.
  virtual NetworkCollectives* collectives() { return nullptr; }
  /// See Communicator::abort(). May be called on any thread while exchange() is running.
  virtual void abort(int status) = 0;
};

}  // namespace attune
