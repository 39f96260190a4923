#pragma once
// A service with its sockets.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "attune/serve/http/http_server.h"
#include "attune/serve/service.h"

namespace attune::serve {

class Server {
 public:
  /// Begins to listen. Throws ConfigError and FileError.
  Server(const ServeConfig& config, std::function<void(const std::string& line)> log);

  int64_t port() const { return http_.port(); }
  /// Loads the models; until then requests get 503. Throws FileError and ConfigError.
  void load() { service_.load(); }
  /// Serves until `stop` is true. Then what runs is answered and the answers are sent, for at most drain_seconds; after
  /// them requests end with what they have, and two seconds are left to send it. Until all are answered new requests
  /// get 503, so that a proxy sends them elsewhere and loses none; while the last answers are sent, new connections are
  /// refused. Models are loaded again, by another thread, when `reload` is true, which is set back, and when a client
  /// asks for it.
  void run(const std::atomic<bool>& stop, std::atomic<bool>& reload);

  Service& service() { return service_; }

 private:
  Service service_;
  HttpServer http_;  // goes first: no request may come when the service ends
};

}  // namespace attune::serve
