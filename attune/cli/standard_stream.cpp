#include "attune/cli/standard_stream.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "attune/cli/command.h"

namespace attune::cli {

// A pipe that poll() calls ready has room for PIPE_BUF bytes: a write() of at most so many does not wait. It must not:
// signals come to another thread, so that none could end the waiting. PIPE_BUF bytes also stay together, so that
// shorter lines of several processes do not mix.
int write_to_stream(int stream, std::string_view text) {
  constexpr int kMilliseconds = 100;
  while (!text.empty()) {
    pollfd place{.fd = stream, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&place, 1, kMilliseconds);
    if (ready == 0 && stop_requested()) return ECANCELED;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t written = ::write(stream, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

void write_to_standard_error(std::string_view text) {
  write_to_stream(STDERR_FILENO, text);
}

}  // namespace attune::cli
