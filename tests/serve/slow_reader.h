#pragma once
// A client that takes its time to read.

#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_client.h"

namespace attune {

/// All that comes until the connection ends, or until nothing has come for 10 seconds. Reads 256 KiB at once, and
/// pauses after each. The system holds little beside what was read.
inline std::string read_slowly(const HttpClient& client, std::chrono::milliseconds pause) {
  const int held = 64 << 10;
  ::setsockopt(client.descriptor(), SOL_SOCKET, SO_RCVBUF, &held, sizeof(held));
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(client.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string arrived;
  std::vector<char> piece(256 << 10);
  for (;;) {
    const ssize_t count = ::recv(client.descriptor(), piece.data(), piece.size(), MSG_WAITALL);
    if (count <= 0) return arrived;
    arrived.append(piece.data(), static_cast<size_t>(count));
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace attune
