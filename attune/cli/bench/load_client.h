#pragma once
// A client that keeps connections to an HTTP server busy, with little work of its own.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

struct Load {
  std::string host = "127.0.0.1";  // an IP address
  int64_t port = 8080;
  std::string path;
  std::vector<std::string> bodies;  // JSON, one a request; from the beginning again when all have been sent
  int64_t requests = 0;
  int64_t connections = 1;
  /// Requests a second that arrive at random, the gaps exponentially distributed. 0: each connection sends its next
  /// request as soon as it has its answer.
  double rate = 0;
  uint64_t seed = 1;                             // of the arrivals
  double timeout_seconds = 300;                  // of a request; it is not sent again
  const std::atomic<bool>* interrupt = nullptr;  // once true, run_load() throws Interrupted
};

/// What became of a request. The texts are valid during the call that gets it.
struct LoadAnswer {
  int64_t request = 0;     // from 0
  int status = 0;          // 0: there is no whole answer, and `error` says why
  std::string_view error;  // "" where there is an answer
  std::string_view body;
  double seconds = 0;              // from the request's arrival to the end of its answer
  double first_event_seconds = 0;  // to the first event of a stream; 0: the answer is not a stream
};

/// Opens all connections, sends all requests and calls `on_answer` for each, in the order in which they end. Returns
/// the seconds from the first request to the last answer. A kept connection that the server has closed between two
/// requests is opened again. Throws ConfigError where `host` is no address, Error where nobody listens there, and what
/// `on_answer` throws.
double run_load(const Load& load, const std::function<void(const LoadAnswer&)>& on_answer);

}  // namespace attune::cli
