#pragma once
// What the connections between ranks need of the system's sockets. All sockets here are non-blocking, are closed on
// exec, and raise no SIGPIPE.

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attune/base/descriptor.h"

namespace attune {

using TimePoint = std::chrono::steady_clock::time_point;

/// An address of IPv4 or IPv6 with a port.
class SocketAddress {
 public:
  SocketAddress() = default;  // none
  SocketAddress(const sockaddr* address, socklen_t size);

  const sockaddr* get() const;
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  SocketAddress with_port(uint16_t port) const;
  std::string host() const;  // "127.0.0.1", "::1"
  std::string text() const;  // "127.0.0.1:29500", "[::1]:29500"
  bool is_loopback() const;  // only this machine reaches it

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// The addresses of a host, a name or a number, with the port, in the system's order. None: the name service has no
/// answer at the moment. Throws ConfigError naming a host that does not exist.
std::vector<SocketAddress> addresses_of_host(const std::string& host, uint16_t port);

/// The same addresses, those that only this machine reaches at the end.
std::vector<SocketAddress> loopback_last(std::vector<SocketAddress> addresses);

SocketAddress local_address(const Descriptor& socket);
SocketAddress remote_address(const Descriptor& socket);

/// A socket, or none and the number of the error.
struct OpenedSocket {
  Descriptor socket = Descriptor();
  int error = 0;
};

/// A socket that listens on this address; port 0: on a port that is free.
OpenedSocket listen_at(const SocketAddress& address);
/// A connection that is made before that time. It sends small messages at once and has keep-alive.
OpenedSocket connect_to(const SocketAddress& address, TimePoint until);
/// The next connection that waits at the listener, with the same options. EAGAIN: there is none.
OpenedSocket accept_at(const Descriptor& listener);

/// Sends or receives all bytes. Returns 0, or the number of the error: ETIMEDOUT at the end of the time, ECONNRESET
/// where the other side closes the connection.
int send_all(const Descriptor& socket, std::span<const std::byte> bytes, TimePoint until);
int receive_all(const Descriptor& socket, std::span<std::byte> bytes, TimePoint until);

/// poll() until that time; TimePoint::max(): forever. Returns false if no event came. Throws CommunicationError.
bool poll_until(std::span<pollfd> polled, TimePoint until);

}  // namespace attune
