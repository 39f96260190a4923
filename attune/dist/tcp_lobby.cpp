#include "attune/dist/tcp_lobby.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "attune/base/deadline.h"
#include "attune/base/fail.h"
#include "attune/base/sha256.h"

namespace attune {
namespace {

constexpr uint64_t kMagic = 0x6174'7475'6e65'2d31;  // "attune-1"; another order of bytes is another number
constexpr uint32_t kProtocol = 1;
constexpr size_t kSpareStrangers = 64;  // connections without a greeting, beside one for each rank

static_assert(std::has_unique_object_representations_v<Greeting>);  // no byte that is sent is undefined
static_assert(std::has_unique_object_representations_v<Answer>);

// Whether the other side has not closed the connection.
bool is_still_there(const Descriptor& socket) {
  char byte = 0;
  const ssize_t n = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

Greeting greeting_of(const TcpRun& run, uint16_t port) {
  Greeting greeting{.magic = kMagic,
                    .version = kProtocol,
                    .size = static_cast<uint32_t>(run.size),
                    .rank = static_cast<uint32_t>(run.rank),
                    .port = port};
  const std::string digest = sha256(fmt::format("attune {}\n{}", run.size, run.token));
  std::copy_n(digest.begin(), std::min(digest.size(), greeting.token.size()), greeting.token.begin());
  return greeting;
}

std::string text_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome:
      return "welcome";
    case Verdict::other_version:
      return "its attune speaks another version of the protocol";
    case Verdict::other_size:
      return "it has another WORLD_SIZE";
    case Verdict::other_token:
      return "it has another ATTUNE_RUN_TOKEN";
    case Verdict::no_such_rank:
      return "its rank is not one that is waited for";
    case Verdict::rank_taken:
      return "another process has the same rank";
  }
  return "an unknown reason";
}

bool is_known(const Answer& answer) {
  return answer.magic == kMagic;
}

Lobby::Lobby(std::vector<Descriptor> listeners, const TcpRun& run, const Descriptor* first_rank)
    : run_(run),
      own_(greeting_of(run, 0)),
      listeners_(std::move(listeners)),
      first_rank_(first_rank),
      guests_(static_cast<size_t>(run.size - run.rank - 1)) {}

std::vector<Guest> Lobby::wait_for_higher_ranks(TimePoint until) {
  while (!all_are_here()) {
    if (TimePoint::clock::now() >= until) fail_for_the_missing();
    look(until);
  }
  return std::move(guests_);
}

bool Lobby::all_are_here() {
  const auto here = [](const Guest& guest) { return guest.socket.is_open(); };
  if (!std::ranges::all_of(guests_, here)) return false;
  // At rank 0 no rank goes on before all are there: one that has left will connect again. Elsewhere a guest that has
  // left may have gone on with other ranks, and failed.
  if (run_.rank == 0)
    for (Guest& guest : guests_)
      if (!is_still_there(guest.socket)) guest = Guest{};
  return std::ranges::all_of(guests_, here);
}

// Waits for the next events and answers them.
void Lobby::look(TimePoint until) {
  std::vector<pollfd> polled;
  for (const Descriptor& listener : listeners_)
    polled.push_back({.fd = listener.get(), .events = POLLIN, .revents = 0});
  for (const Stranger& stranger : strangers_) {
    polled.push_back({.fd = stranger.socket.get(), .events = POLLIN, .revents = 0});
    until = std::min(until, stranger.until);
  }
  if (first_rank_ != nullptr) polled.push_back({.fd = first_rank_->get(), .events = POLLRDHUP, .revents = 0});
  poll_until(polled, until);
  if (first_rank_ != nullptr && polled.back().revents != 0)
    fail<CommunicationError>("rank {}: rank 0 has left before all ranks were connected", run_.rank);
  for (size_t i = 0; i < strangers_.size(); ++i)
    if (polled[listeners_.size() + i].revents != 0) listen_to(strangers_[i]);
  const TimePoint now = TimePoint::clock::now();
  std::erase_if(strangers_, [&](const Stranger& stranger) { return stranger.done || stranger.until <= now; });
  for (size_t i = 0; i < listeners_.size(); ++i)
    if (polled[i].revents != 0) accept(listeners_[i]);
}

void Lobby::accept(const Descriptor& listener) {
  for (;;) {
    OpenedSocket opened = accept_at(listener);
    if (opened.error == EAGAIN) return;
    if (opened.error != 0) fail<CommunicationError>("rank {}: accept: {}", run_.rank, std::strerror(opened.error));
    // A rank greets at once: the connection that has been silent for longest is not from one.
    if (strangers_.size() == guests_.size() + kSpareStrangers) strangers_.erase(strangers_.begin());
    strangers_.push_back({.socket = std::move(opened.socket),
                          .until = deadline_after(run_.greeting_seconds, "the time for a greeting")});
  }
}

void Lobby::listen_to(Stranger& stranger) {
  const std::span bytes = std::as_writable_bytes(std::span(&stranger.greeting, 1)).subspan(stranger.received);
  const ssize_t n = ::recv(stranger.socket.get(), bytes.data(), bytes.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) stranger.received += static_cast<size_t>(n);
  const bool complete = stranger.received == sizeof(Greeting);
  stranger.done = n <= 0 || complete;
  if (complete) judge(stranger);
}

void Lobby::judge(Stranger& stranger) {
  const Greeting& greeting = stranger.greeting;
  if (greeting.magic != kMagic || greeting.port == 0 || greeting.port > UINT16_MAX) return;
  const Verdict verdict = verdict_on(greeting);
  const Answer answer{.magic = kMagic, .version = kProtocol, .verdict = verdict};
  // The first bytes on a connection fit into its buffer. If they cannot be sent it is broken, which is noticed later.
  ::send(stranger.socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (verdict != Verdict::welcome) {
    refused_ = fmt::format("; rank {} of {} came from {} and was refused: {}", greeting.rank, greeting.size,
                           remote_address(stranger.socket).text(), text_of(verdict));
    return;
  }
  guests_[place_of(greeting)] = {.socket = std::move(stranger.socket), .port = static_cast<uint16_t>(greeting.port)};
}

Verdict Lobby::verdict_on(const Greeting& greeting) const {
  if (greeting.version != kProtocol) return Verdict::other_version;
  if (greeting.size != own_.size) return Verdict::other_size;
  if (greeting.token != own_.token) return Verdict::other_token;
  if (greeting.rank <= own_.rank || greeting.rank >= own_.size) return Verdict::no_such_rank;
  const Descriptor& first = guests_[place_of(greeting)].socket;
  return first.is_open() && is_still_there(first) ? Verdict::rank_taken : Verdict::welcome;
}

size_t Lobby::place_of(const Greeting& greeting) const {
  return greeting.rank - own_.rank - 1;
}

void Lobby::fail_for_the_missing() const {
  constexpr size_t kNamed = 20;
  std::vector<std::string> missing;
  for (size_t i = 0; i < guests_.size(); ++i)
    if (!guests_[i].socket.is_open()) missing.push_back(std::to_string(own_.rank + 1 + i));
  const size_t count = missing.size();
  missing.resize(std::min(count, kNamed));
  std::vector<std::string> places;
  bool only_here = true;
  for (const Descriptor& listener : listeners_) {
    const SocketAddress address = local_address(listener);
    places.push_back(address.text());
    only_here = only_here && address.is_loopback();
  }
  fail<CommunicationError>("rank {}: {} of {} ranks did not come to {} within {:g} s: rank{} {}{}{}{}", run_.rank,
                           count, run_.size, fmt::join(places, ", "), run_.seconds, count == 1 ? "" : "s",
                           fmt::join(missing, ", "), count > kNamed ? ", ..." : "",
                           only_here ? "; only processes of this machine reach this address" : "", refused_);
}

}  // namespace attune
