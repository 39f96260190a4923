#include "attune/dist/tcp_rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "attune/base/deadline.h"
#include "attune/base/fail.h"
#include "attune/dist/tcp_lobby.h"
#include "attune/dist/tcp_socket.h"

namespace attune {
namespace {

using std::chrono::milliseconds;

// Where a rank listens, as rank 0 tells it the others.
struct Place {
  std::array<char, 64> host{};  // a number, as text that ends with a zero
  uint32_t port = 0;

  std::string host_text() const { return {host.data(), ::strnlen(host.data(), host.size())}; }
};

template <class Record>
std::span<std::byte> bytes_of(Record& record) {
  return std::as_writable_bytes(std::span(&record, 1));
}

// What rank 0 listens with: one socket for each address of its machine's name.
std::vector<Descriptor> listeners_of_first_rank(const TcpRun& run) {
  std::vector<Descriptor> listeners;
  std::string why = "the name service has no answer";
  for (const SocketAddress& address : addresses_of_host(run.address, run.port)) {
    OpenedSocket opened = listen_at(address);
    // Another program at the port is an error at once; an address that this machine cannot use (IPv6) is passed over.
    if (opened.error == EADDRINUSE)
      fail<ConfigError>("rank 0 cannot listen at {}: another program does; set ATTUNE_MASTER_PORT or MASTER_PORT",
                        address.text());
    if (opened.error == 0) listeners.push_back(std::move(opened.socket));
    if (opened.error != 0) why = fmt::format("{}: {}", address.text(), std::strerror(opened.error));
  }
  if (listeners.empty())
    fail<ConfigError>("rank 0 cannot listen at MASTER_ADDR = {}, which is to be its own machine: {}", run.address, why);
  return listeners;
}

std::vector<Descriptor> bring_together(const TcpRun& run, TimePoint until) {
  Lobby lobby(listeners_of_first_rank(run), run, nullptr);
  std::vector<Guest> guests = lobby.wait_for_higher_ranks(until);
  std::vector<Place> places(static_cast<size_t>(run.size));
  for (size_t i = 0; i < guests.size(); ++i) {
    const std::string host = remote_address(guests[i].socket).host();
    Place& place = places[i + 1];
    std::copy_n(host.begin(), std::min(host.size(), place.host.size() - 1), place.host.begin());
    place.port = guests[i].port;
  }
  std::vector<Descriptor> peers(places.size());
  for (size_t i = 0; i < guests.size(); ++i) {
    if (const int error = send_all(guests[i].socket, std::as_bytes(std::span(places)), until); error != 0)
      fail<CommunicationError>("rank 0: rank {} has left before all ranks were connected: {}", i + 1,
                               std::strerror(error));
    peers[i + 1] = std::move(guests[i].socket);
  }
  return peers;
}

// Reads the answer to a greeting. Throws where this rank is refused; returns 0 or the number of an error.
int receive_welcome(const TcpRun& run, const Descriptor& socket, TimePoint until) {
  Answer answer;
  const int error = receive_all(socket, bytes_of(answer), until);
  if (error != 0) return error;
  const std::string who = remote_address(socket).text();
  if (!is_known(answer))
    fail<CommunicationError>("rank {}: what listens at {} is no rank of attune; set ATTUNE_MASTER_PORT", run.rank, who);
  if (answer.verdict != Verdict::welcome)
    fail<CommunicationError>("rank {} of {} is refused at {}: {}", run.rank, run.size, who, text_of(answer.verdict));
  return 0;
}

// Greets who listens at the other end, and names the port at which this rank does.
int greet(const TcpRun& run, const Descriptor& socket, uint16_t port, TimePoint until) {
  Greeting greeting = greeting_of(run, port);
  return send_all(socket, bytes_of(greeting), until);
}

struct Entry {
  Descriptor first_rank = Descriptor();
  Descriptor listener = Descriptor();
};

// Calls rank 0 at one of its addresses. Returns 0 once it has said welcome, or the number of an error.
int try_to_enter(const TcpRun& run, const SocketAddress& address, TimePoint until, Entry& entry) {
  OpenedSocket first_rank = connect_to(address, until);
  if (first_rank.error != 0) return first_rank.error;
  OpenedSocket listener = listen_at(local_address(first_rank.socket).with_port(0));
  if (listener.error != 0) return listener.error;
  int error = greet(run, first_rank.socket, local_address(listener.socket).port(), until);
  if (error == 0) error = receive_welcome(run, first_rank.socket, until);
  entry = {.first_rank = std::move(first_rank.socket), .listener = std::move(listener.socket)};
  return error;
}

// Tries again until rank 0 answers, which may have started later than this one. This rank listens at the address of its
// own by which it reaches rank 0, and the other ranks connect to it there. On the machine of rank 0, the name of that
// machine may stand for a loopback address too (127.0.1.1 on Debian), which no other machine reaches: such addresses
// are tried last.
Entry enter(const TcpRun& run, TimePoint until) {
  std::string why = "the name service has no answer";
  for (milliseconds pause{50};; pause = std::min(2 * pause, milliseconds(1000))) {
    for (const SocketAddress& address : loopback_last(addresses_of_host(run.address, run.port))) {
      const TimePoint end = std::min(until, deadline_after(run.greeting_seconds, "the time for a greeting"));
      Entry entry;
      const int error = try_to_enter(run, address, end, entry);
      if (error == 0) return entry;
      why = fmt::format("{}: {}", address.text(), std::strerror(error));
    }
    if (TimePoint::clock::now() + pause >= until)
      fail<CommunicationError>("rank {}: rank 0 is missing: MASTER_ADDR = {} did not answer within {:g} s: {}",
                               run.rank, run.address, run.seconds, why);
    std::this_thread::sleep_for(pause);
  }
}

std::vector<Place> receive_places(const TcpRun& run, const Descriptor& first_rank, TimePoint until) {
  std::vector<Place> places(static_cast<size_t>(run.size));
  const int error = receive_all(first_rank, std::as_writable_bytes(std::span(places)), until);
  if (error == ETIMEDOUT)
    fail<CommunicationError>("rank {}: not all ranks came to rank 0 within {:g} s; it says who is missing", run.rank,
                             run.seconds);
  if (error != 0)
    fail<CommunicationError>("rank {}: rank 0 has left before all ranks had come; it says why: {}", run.rank,
                             std::strerror(error));
  return places;
}

// Connects with a lower rank. Its answer is read later, since that rank may itself be waiting for answers.
Descriptor call(const TcpRun& run, int rank, const Place& place, uint16_t own_port, TimePoint until) {
  if (place.port == 0 || place.port > UINT16_MAX)
    fail<CommunicationError>("rank {}: rank 0 says that rank {} listens at port {}", run.rank, rank, place.port);
  const std::vector<SocketAddress> addresses = addresses_of_host(place.host_text(), static_cast<uint16_t>(place.port));
  OpenedSocket opened{.socket = Descriptor(), .error = EADDRNOTAVAIL};
  if (!addresses.empty()) opened = connect_to(addresses.front(), until);
  if (opened.error == 0) opened.error = greet(run, opened.socket, own_port, until);
  if (opened.error != 0)
    fail<CommunicationError>("rank {}: rank {} cannot be reached at {}, port {}: {}", run.rank, rank, place.host_text(),
                             place.port, std::strerror(opened.error));
  return std::move(opened.socket);
}

std::vector<Descriptor> join(const TcpRun& run, TimePoint until) {
  Entry entry = enter(run, until);
  const std::vector<Place> places = receive_places(run, entry.first_rank, until);
  const uint16_t own_port = local_address(entry.listener).port();
  std::vector<Descriptor> peers(places.size());
  for (int rank = 1; rank < run.rank; ++rank) {
    const auto at = static_cast<size_t>(rank);
    peers[at] = call(run, rank, places[at], own_port, until);
  }
  std::vector<Descriptor> listeners;
  listeners.push_back(std::move(entry.listener));
  Lobby lobby(std::move(listeners), run, &entry.first_rank);
  std::vector<Guest> guests = lobby.wait_for_higher_ranks(until);
  for (size_t i = 0; i < guests.size(); ++i) peers[static_cast<size_t>(run.rank) + 1 + i] = std::move(guests[i].socket);
  for (int rank = 1; rank < run.rank; ++rank)
    if (const int error = receive_welcome(run, peers[static_cast<size_t>(rank)], until); error != 0)
      fail<CommunicationError>("rank {}: rank {} has left before all ranks were connected: {}", run.rank, rank,
                               std::strerror(error));
  peers[0] = std::move(entry.first_rank);
  return peers;
}

}  // namespace

std::vector<Descriptor> connect_ranks(const TcpRun& run) {
  const TimePoint until = deadline_after(run.seconds, "environment ATTUNE_RENDEZVOUS_SECONDS");
  return run.rank == 0 ? bring_together(run, until) : join(run, until);
}

}  // namespace attune
