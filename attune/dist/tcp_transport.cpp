#include "attune/dist/tcp_transport.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attune/base/descriptor.h"
#include "attune/base/fail.h"
#include "attune/dist/tcp_rendezvous.h"
#include "attune/dist/tcp_socket.h"

namespace attune {
namespace {

// A message is its size, then its bytes. The last message on a connection may be a farewell: in place of a size, it
// says which rank has left the run.
constexpr uint64_t kFarewell = uint64_t{1} << 63;

// What is left of a message that is being sent or received. A new one has nothing left.
class MessagePart {
 public:
  MessagePart() = default;
  MessagePart(std::byte* body, size_t size, uint64_t header)
      : header_(header), body_(body), size_(size), left_(all()) {}

  bool is_done() const { return left_ == 0; }
  bool has_begun() const { return left_ < all(); }
  bool has_header() const { return left_ <= size_; }
  uint64_t header() const { return header_; }
  size_t size() const { return size_; }
  void advance(size_t bytes) { left_ -= bytes; }

  // For sendmsg() and recvmsg(), which take header and body in one call.
  std::array<iovec, 2> rest() {
    const size_t moved = all() - left_, of_header = std::min(moved, sizeof(header_)), of_body = moved - of_header;
    auto* header = static_cast<std::byte*>(static_cast<void*>(&header_));
    return {{{header + of_header, sizeof(header_) - of_header}, {body_ + of_body, size_ - of_body}}};
  }

 private:
  size_t all() const { return sizeof(header_) + size_; }

  uint64_t header_ = 0;
  std::byte* body_ = nullptr;
  size_t size_ = 0;
  size_t left_ = 0;
};

Descriptor make_counter() {
  Descriptor counter(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!counter.is_open()) fail<CommunicationError>("eventfd: {}", std::strerror(errno));
  return counter;
}

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TcpRun& run) : rank_(run.rank), wake_(make_counter()), peers_(connect_ranks(run)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }

  void exchange(int to, std::span<const std::byte> out, int from, std::span<std::byte> in) override {
    const std::lock_guard lock(mutex_);
    if (left_) fail<CommunicationError>("the run has ended, since rank {} has left it", *left_);
    to_ = to;
    from_ = from;
    // sendmsg() only reads what it sends, but iovec has no const.
    outgoing_ = to == kNobody ? MessagePart() : MessagePart(const_cast<std::byte*>(out.data()), out.size(), out.size());
    incoming_ = from == kNobody ? MessagePart() : MessagePart(in.data(), in.size(), 0);
    while (!outgoing_.is_done() || !incoming_.is_done()) {
      if (aborted_) leave(rank_, "abort()");
      const bool sent = send_some(), received = receive_some();
      if (!sent && !received) wait();
    }
  }

  void abort(int) override {
    aborted_ = true;
    const uint64_t one = 1;
    // An error does no harm: a counter that is full wakes the other thread too.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    const std::lock_guard lock(mutex_);
    if (!left_) say_farewell(rank_);
  }

 private:
  const Descriptor& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }

  // Both return false if nothing could be moved now.
  bool send_some() {
    if (outgoing_.is_done()) return false;
    std::array<iovec, 2> rest = outgoing_.rest();
    msghdr message{};
    message.msg_iov = rest.data();
    message.msg_iovlen = rest.size();
    const ssize_t n = ::sendmsg(peer(to_).get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return not_now(to_);
    outgoing_.advance(static_cast<size_t>(n));
    return true;
  }

  bool receive_some() {
    if (incoming_.is_done()) return false;
    std::array<iovec, 2> rest = incoming_.rest();
    msghdr message{};
    message.msg_iov = rest.data();
    message.msg_iovlen = rest.size();
    const ssize_t n = ::recvmsg(peer(from_).get(), &message, MSG_DONTWAIT);
    if (n < 0) return not_now(from_);
    if (n == 0) leave(from_, "its connection is closed");
    incoming_.advance(static_cast<size_t>(n));
    if (incoming_.has_header()) check_header();
    return true;
  }

  // After a call that failed: returns false if it may be tried again, else throws.
  bool not_now(int rank) {
    if (errno == EAGAIN || errno == EINTR) return false;
    lose(rank, std::strerror(errno));
  }

  void check_header() {
    const uint64_t header = incoming_.header();
    if ((header & kFarewell) != 0) leave(rank_in(header).value_or(from_), fmt::format("rank {} says so", from_));
    if (header == incoming_.size()) return;
    say_farewell(rank_);
    fail<CommunicationError>("rank {} sent {} bytes where {} are expected; do all run the same command?", from_, header,
                             incoming_.size());
  }

  void wait() {
    std::array<pollfd, 3> polled = {
        {{wake_.get(), POLLIN, 0},
         {outgoing_.is_done() ? -1 : peer(to_).get(), POLLOUT | POLLRDHUP, 0},  // poll() leaves out what is negative
         {incoming_.is_done() ? -1 : peer(from_).get(), POLLIN, 0}}};
    poll_until(polled, TimePoint::max());
    // A rank that has left reads nothing more: this one would wait for room in the connection for ever.
    if ((polled[1].revents & POLLRDHUP) != 0) lose(to_, "its connection is closed");
  }

  // A connection is broken; perhaps the rank at its other end has said why.
  [[noreturn]] void lose(int rank, const std::string& how) {
    uint64_t header = 0;
    const bool between = rank != from_ || incoming_.is_done() || !incoming_.has_begun();
    const ssize_t n = ::recv(peer(rank).get(), &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);
    const bool said = between && n == ssize_t{sizeof(header)} && (header & kFarewell) != 0;
    const std::optional<int> gone = said ? rank_in(header) : std::nullopt;
    leave(gone.value_or(rank), gone ? fmt::format("rank {} says so", rank) : how);
  }

  [[noreturn]] void leave(int gone, const std::string& how) {
    say_farewell(gone);
    fail<CommunicationError>("rank {} has left the run: {}", gone, how);
  }

  // Tells all other ranks. This one sends nothing after it.
  void say_farewell(int gone) {
    left_ = gone;
    const uint64_t header = kFarewell | static_cast<uint64_t>(gone);
    const bool within = outgoing_.has_begun() && !outgoing_.is_done();
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      if (!within || rank != to_) ::send(peer(rank).get(), &header, sizeof(header), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::shutdown(peer(rank).get(), SHUT_WR);
    }
  }

  std::optional<int> rank_in(uint64_t farewell) const {
    const uint64_t rank = farewell & ~kFarewell;
    return rank < peers_.size() ? std::optional(static_cast<int>(rank)) : std::nullopt;
  }

  const int rank_;
  const Descriptor wake_;                // readable once abort() was called
  const std::vector<Descriptor> peers_;  // by rank
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;         // held by exchange(); guards all below
  std::optional<int> left_;  // the rank whose leaving has ended the run
  int to_ = kNobody, from_ = kNobody;
  MessagePart outgoing_, incoming_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(const TcpRun& run) {
  return std::make_unique<TcpTransport>(run);
}

}  // namespace attune
