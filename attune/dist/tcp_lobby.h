#pragma once
// Where a rank waits for the higher ranks to connect.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attune/base/descriptor.h"
#include "attune/dist/tcp_run.h"
#include "attune/dist/tcp_socket.h"

namespace attune {

/// The first message on a connection, from the side that connects. In the byte order of both machines, which is the
/// same.
struct Greeting {
  uint64_t magic = 0;
  uint32_t version = 0, size = 0, rank = 0;
  uint32_t port = 0;             // at which the rank listens
  std::array<char, 64> token{};  // a digest of TcpRun's size and token
};
Greeting greeting_of(const TcpRun& run, uint16_t port);

enum class Verdict : uint32_t { welcome, other_version, other_size, other_token, no_such_rank, rank_taken };
std::string text_of(Verdict verdict);

/// The answer to a greeting.
struct Answer {
  uint64_t magic = 0;
  uint32_t version = 0;
  Verdict verdict = Verdict::welcome;
};
/// Whether an answer is one of this protocol.
bool is_known(const Answer& answer);

/// A rank that has greeted and is welcome.
struct Guest {
  Descriptor socket = Descriptor();  // none: has not come
  uint16_t port = 0;                 // at which it listens
};

/// Trusts no connection: one that brings no greeting in time, or something else, is closed, and holds nobody else up. A
/// second process of one rank is refused while the first is there.
class Lobby {
 public:
  /// `first_rank`: a connection with rank 0, which must outlive this; null at rank 0 itself.
  Lobby(std::vector<Descriptor> listeners, const TcpRun& run, const Descriptor* first_rank);

  /// The ranks run.rank + 1, run.rank + 2, ..., once all have come. Throws CommunicationError that names the missing
  /// ones at the end of the time, and when rank 0 leaves.
  std::vector<Guest> wait_for_higher_ranks(TimePoint until);

 private:
  struct Stranger {  // a connection whose greeting has not come in full
    Descriptor socket = Descriptor();
    TimePoint until{};
    Greeting greeting{};
    size_t received = 0;
    bool done = false;
  };

  bool all_are_here();
  void look(TimePoint until);
  void accept(const Descriptor& listener);
  void listen_to(Stranger& stranger);
  void judge(Stranger& stranger);
  Verdict verdict_on(const Greeting& greeting) const;
  size_t place_of(const Greeting& greeting) const;
  [[noreturn]] void fail_for_the_missing() const;

  const TcpRun run_;
  const Greeting own_;
  const std::vector<Descriptor> listeners_;
  const Descriptor* first_rank_;
  std::vector<Guest> guests_;  // of rank run_.rank + 1 + i
  std::vector<Stranger> strangers_;
  std::string refused_;  // which process was refused last, and why, for the message
};

}  // namespace attune
