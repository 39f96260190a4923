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
  /// Begins to listen; loads no model yet. Throws ConfigError, FileError and DeviceError.
  Server(const ServeConfig& config, std::function<void(const std::string& line)> log);

  int64_t port() const { return http_.port(); }
  /// Loads the models; until then requests get 503. Throws FileError, ConfigError and DeviceError.
  void load() { service_.load(); }
  /// Serves until `stop` is true, and then ends in steps. First the requests that are there are answered, for at most
  /// drain_seconds; new ones get 503, so that a proxy sends them elsewhere and loses none. Then requests that still run
  /// end with what they have, and new connections are refused. Answers have until the end of drain_seconds to be sent,
  /// and at least two seconds. Models are loaded again, on another thread, when a client asks for it and when `reload`
  /// is true, which is then set to false.
  void run(const std::atomic<bool>& stop, std::atomic<bool>& reload);

  Service& service() { return service_; }

 private:
  Service service_;
  HttpServer http_;  // destroyed first: no request may come while the service is destroyed
};

}  // namespace attune::serve
