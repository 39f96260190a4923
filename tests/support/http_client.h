#pragma once
// A small client of HTTP/1.1 on a socket of this machine, which can also send what no client should.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "attune/base/descriptor.h"
#include "attune/base/fail.h"

namespace attune {

class HttpClient {
 public:
  explicit HttpClient(int64_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      fail<Error>("cannot connect to port {}", port);
  }

  /// False where the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void post(std::string_view path, std::string_view body, std::string_view headers = "") {
    send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                     path, body.size(), headers, body));
  }
  void get(std::string_view path) { send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path)); }

  /// What has arrived when `text` is among it, at the end of the connection, or after some seconds.
  std::string read_until(std::string_view text, int seconds = 20) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (arrived_.find(text) == std::string::npos && std::chrono::steady_clock::now() < end) {
      pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 100) <= 0) continue;
      char piece[4096];
      const ssize_t count = ::recv(socket_.get(), piece, sizeof(piece), 0);
      if (count <= 0) {
        closed_ = true;
        break;
      }
      arrived_.append(piece, static_cast<size_t>(count));
    }
    return std::exchange(arrived_, {});
  }
  /// Up to the end of the connection.
  std::string read_all(int seconds = 20) { return read_until("\x01 nothing has this", seconds); }
  bool closed() const { return closed_; }
  int descriptor() const { return socket_.get(); }

 private:
  Descriptor socket_;
  std::string arrived_;
  bool closed_ = false;
};

}  // namespace attune
