#include "attune/dist/tcp_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "attune/base/fail.h"

namespace attune {
namespace {

constexpr int kSocketKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

OpenedSocket no_socket(int error) {
  return {.socket = Descriptor(), .error = error};
}

// Errors are ignored: nothing depends on an option that a system lacks.
void set_option(const Descriptor& socket, int level, int name, int value) {
  ::setsockopt(socket.get(), level, name, &value, sizeof(value));
}

// A machine that loses power closes no connection: a rank that waits for its message learns of it after two minutes.
void set_options_of_connection(const Descriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 6);
}

template <class Name>
SocketAddress address_by(Name name_of, const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = static_cast<sockaddr*>(static_cast<void*>(&storage));
  if (name_of(socket.get(), address, &size) != 0) return {};
  return {address, std::min<socklen_t>(size, sizeof(storage))};
}

// A process that tries again and again to connect to a free port of its own machine may get that port as its own, and
// is then connected with itself.
bool is_connected_with_itself(const Descriptor& socket) {
  if (local_address(socket).text() != remote_address(socket).text()) return false;
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // frees the port for the rank that is to listen there
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  return true;
}

// 0 once the connection is made.
int finish_connecting(const Descriptor& socket, TimePoint until) {
  pollfd polled{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (!poll_until({&polled, 1}, until)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool may_be_tried_again(int error) {
  return error == EAGAIN || error == EINTR;
}

// Calls move(the bytes that are left) until none are left; it returns how many it has moved, as send() and recv() do.
template <class Bytes, class Move>
int move_all(const Descriptor& socket, Bytes bytes, short event, TimePoint until, Move move) {
  while (!bytes.empty()) {
    const ssize_t n = move(bytes);
    if (n == 0) return ECONNRESET;
    if (n < 0 && !may_be_tried_again(errno)) return errno;
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
    pollfd polled{.fd = socket.get(), .events = event, .revents = 0};
    if (n < 0 && !poll_until({&polled, 1}, until)) return ETIMEDOUT;
  }
  return 0;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size)
    : size_(std::min<socklen_t>(size, sizeof(storage_))) {
  std::memcpy(&storage_, address, size_);
}

const sockaddr* SocketAddress::get() const {
  return static_cast<const sockaddr*>(static_cast<const void*>(&storage_));
}

static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

uint16_t SocketAddress::port() const {
  sockaddr_in address{};
  std::memcpy(&address, &storage_, sizeof(address));
  return ntohs(address.sin_port);
}

SocketAddress SocketAddress::with_port(uint16_t port) const {
  SocketAddress changed = *this;
  const in_port_t number = htons(port);
  auto* bytes = static_cast<char*>(static_cast<void*>(&changed.storage_));
  std::memcpy(bytes + offsetof(sockaddr_in, sin_port), &number, sizeof(number));
  return changed;
}

std::string SocketAddress::host() const {
  char text[NI_MAXHOST] = "";
  if (size_ == 0 || ::getnameinfo(get(), size_, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return text;
}

std::string SocketAddress::text() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port()) : fmt::format("{}:{}", host(), port());
}

bool SocketAddress::is_loopback() const {
  return family() == AF_INET6 ? host() == "::1" : host().starts_with("127.");
}

std::vector<SocketAddress> addresses_of_host(const std::string& host, uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &first);
  if (error == EAI_AGAIN) return {};
  if (error != 0) fail<ConfigError>("{}: is no address and no name of a machine: {}", host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(first, ::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    const SocketAddress address = SocketAddress(entry->ai_addr, entry->ai_addrlen).with_port(port);
    const auto same = [&](const SocketAddress& other) { return other.text() == address.text(); };
    if (std::ranges::none_of(addresses, same)) addresses.push_back(address);  // /etc/hosts may have one twice
  }
  return addresses;
}

std::vector<SocketAddress> loopback_last(std::vector<SocketAddress> addresses) {
  // Clang 14 does not compile std::ranges::stable_partition().
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const SocketAddress& address) { return !address.is_loopback(); });
  return addresses;
}

SocketAddress local_address(const Descriptor& socket) {
  return address_by(::getsockname, socket);
}

SocketAddress remote_address(const Descriptor& socket) {
  return address_by(::getpeername, socket);
}

OpenedSocket listen_at(const SocketAddress& address) {
  Descriptor socket(::socket(address.family(), kSocketKind, IPPROTO_TCP));
  if (!socket.is_open()) return no_socket(errno);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // the last run's connections may not be forgotten yet
  if (address.family() == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(socket.get(), address.get(), address.size()) != 0) return no_socket(errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return no_socket(errno);
  return {.socket = std::move(socket), .error = 0};
}

OpenedSocket connect_to(const SocketAddress& address, TimePoint until) {
  Descriptor socket(::socket(address.family(), kSocketKind, IPPROTO_TCP));
  if (!socket.is_open()) return no_socket(errno);
  if (::connect(socket.get(), address.get(), address.size()) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return no_socket(errno);
    if (const int error = finish_connecting(socket, until); error != 0) return no_socket(error);
  }
  if (is_connected_with_itself(socket)) return no_socket(ECONNREFUSED);
  set_options_of_connection(socket);
  return {.socket = std::move(socket), .error = 0};
}

OpenedSocket accept_at(const Descriptor& listener) {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.is_open()) {
    const bool this_machine = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return no_socket(this_machine ? errno : EAGAIN);  // all else is of a connection that has gone already
  }
  set_options_of_connection(socket);
  return {.socket = std::move(socket), .error = 0};
}

int send_all(const Descriptor& socket, std::span<const std::byte> bytes, TimePoint until) {
  return move_all(socket, bytes, POLLOUT, until,
                  [&](auto rest) { return ::send(socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL); });
}

int receive_all(const Descriptor& socket, std::span<std::byte> bytes, TimePoint until) {
  return move_all(socket, bytes, POLLIN, until,
                  [&](auto rest) { return ::recv(socket.get(), rest.data(), rest.size(), 0); });
}

bool poll_until(std::span<pollfd> polled, TimePoint until) {
  using Clock = TimePoint::clock;
  for (;;) {
    int wait = -1;
    if (until != TimePoint::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      wait = static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
    }
    const int ready = ::poll(polled.data(), polled.size(), wait);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail<CommunicationError>("poll: {}", std::strerror(errno));
    if (ready == 0 && wait != INT_MAX) return false;
  }
}

}  // namespace attune
