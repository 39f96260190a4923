#pragma once
// Reads requests from sockets and sends the answers.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "attune/serve/http/exchange.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {

struct HttpOptions {
  std::string host = "127.0.0.1";                  // an address or a name of this machine
  int64_t port = 8080;                             // 0: any that is free
  std::string tls_certificate = {}, tls_key = {};  // PEM files; "": without TLS
  int64_t connections = 4096;                      // at once; more are refused with 503, with TLS closed unanswered
  int64_t header_bytes = 16 << 10;
  int64_t body_bytes = 4 << 20;
  int64_t bodies_bytes = 256 << 20;  // of all requests in memory, at least twice body_bytes; beyond it 503
  int64_t unsent_bytes = 16 << 20;   // of a stream, waiting for its client; with more the client counts as gone
  double header_seconds = 10;        // for a TLS handshake, and for the headers; of a later request from its first byte
  double body_seconds = 30;          // for the body
  double idle_seconds = 75;          // from an answer to the first byte of the next request
  double write_seconds = 30;         // until the client takes the next part of an answer, of some 100 KiB
};

/// HTTP/1.1 on one thread. Connections are kept, an answer that is streamed is sent in chunks. A client that goes away
/// is noticed while its answer is formed.
class HttpServer {
 public:
  /// Called on the server's thread with each request, and must not wait: the answer is written later.
  using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

  /// Forms the answer to a request that the server refuses (too long, not HTTP, a connection or a body too many); the
  /// connection ends after it. `request` has what was read of it. Called on the server's thread, and must not wait.
  using Refuser = std::function<HttpResponse(const HttpRequest& request, const HttpError& why)>;
  static HttpResponse plain_refusal(const HttpRequest& request, const HttpError& why);

  /// Returns whether the head of a request comes from a known client. Called on the server's thread before the body is
  /// read. Bodies of unknown clients may take half of bodies_bytes, so that there is room for those of others.
  using ClientCheck = std::function<bool(const HttpRequest& head)>;
  static bool everybody_is_known(const HttpRequest&) { return true; }

  /// Begins to listen, at every address of the host. Throws ConfigError for a host without an address, a port that is
  /// in use, and a certificate that cannot be used.
  HttpServer(const HttpOptions& options, Handler handler, Refuser refuser = plain_refusal,
             ClientCheck is_known = everybody_is_known);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  /// Ends all connections.
  ~HttpServer();

  int64_t port() const;
  int64_t connections() const;
  /// How many connections have a request whose answer is not sent to its end.
  int64_t answers() const;
  /// Every answer that begins from now on is the last one of its connection. New connections are taken.
  void drain();
  /// Refuses new connections. Those that are there are closed after the answer at work.
  void stop_accepting();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attune::serve
