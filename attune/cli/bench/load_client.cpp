#include "attune/cli/bench/load_client.h"

#include <utility>  // Asio of Boost 1.74 uses it without including it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cmath>
#include <exception>
#include <list>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/base/random.h"
#include "attune/serve/http/host_addresses.h"

namespace attune::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostAnswerBytes = uint64_t{1} << 30;
constexpr std::chrono::milliseconds kBetweenLooks{50};  // at whether the load is to end

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Whether the server has closed the connection, as it may while it waits for a request.
bool is_closed_by_server(const error_code& error) {
  return error == http::error::end_of_stream || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe;
}

struct Connection {
  beast::tcp_stream stream;
  asio::steady_timer arrival;  // of its next request
  beast::flat_buffer buffer = {};
  bool open = false;

  explicit Connection(asio::io_context& io) : stream(io), arrival(io) {}
};

using Parser = http::response_parser<http::string_body>;

class Client {
 public:
  Client(const Load& load, const std::function<void(const LoadAnswer&)>& on_answer)
      : load_(load), on_answer_(on_answer), host_(serve::authority_of(load.host, load.port)), random_(load.seed) {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(load.host, error);
    if (error) fail<ConfigError>("--host {}: needs an IP address, for instance 127.0.0.1", load.host);
    server_ = tcp::endpoint(address, static_cast<uint16_t>(load.port));
    for (int64_t i = 0; i < load.connections; ++i) connections_.emplace_back(io_);
  }

  double run() {
    run_for_all(&Client::connect_first);
    if (connect_error_) fail<Error>("{}: {}", host_, connect_error_->message());
    next_arrival_ = begin_ = end_ = Clock::now();
    run_for_all(&Client::send_requests);
    return seconds_between(begin_, end_);
  }

 private:
  // Runs `work` for each connection until all have ended. When one of them throws, or after an interrupt, ends the
  // others at once; then throws what that one threw, or Interrupted.
  void run_for_all(awaitable<void> (Client::*work)(Connection&)) {
    std::exception_ptr failure;
    const auto on_end = [&](const std::exception_ptr& error) {
      if (error == nullptr || failure != nullptr) return;
      failure = error;
      stop();
    };
    io_.restart();
    for (Connection& c : connections_) asio::co_spawn(io_, (this->*work)(c), on_end);
    while (!io_.stopped()) {
      io_.run_for(kBetweenLooks);
      if (load_.interrupt != nullptr && *load_.interrupt) stop();
    }
    if (failure) std::rethrow_exception(failure);
    if (stopping_) throw Interrupted();
  }

  void stop() {
    stopping_ = true;
    for (Connection& c : connections_) {
      c.arrival.cancel();
      c.stream.close();
    }
  }

  awaitable<void> connect_first(Connection& c) {
    error_code error;
    co_await connect(c, error);
    if (error) connect_error_ = error;
  }

  awaitable<void> connect(Connection& c, error_code& error) {
    c.stream.close();
    c.buffer.clear();
    c.stream.expires_after(duration_of(load_.timeout_seconds));
    co_await c.stream.async_connect(server_, redirect_error(use_awaitable, error));
    c.open = !error;
    error_code ignored;
    if (c.open) c.stream.socket().set_option(tcp::no_delay(true), ignored);
  }

  // Requests arrive one after the other, and a free connection takes the next one: it waits for its arrival, or sends
  // it at once when that has passed.
  awaitable<void> send_requests(Connection& c) {
    while (!stopping_ && next_request_ < load_.requests) {
      const int64_t request = next_request_++;
      Clock::time_point arrival = Clock::now();
      if (load_.rate > 0) {
        next_arrival_ += duration_of(-std::log1p(-random_.uniform()) / load_.rate);
        arrival = next_arrival_;
        c.arrival.expires_at(arrival);
        error_code ignored;
        co_await c.arrival.async_wait(redirect_error(use_awaitable, ignored));
        if (stopping_) break;
      }
      co_await exchange(c, request, arrival);
    }
    c.stream.close();
  }

  awaitable<void> exchange(Connection& c, int64_t request, Clock::time_point arrival) {
    LoadAnswer answer;
    answer.request = request;
    for (;;) {
      error_code error;
      const bool kept = c.open;
      if (!kept) co_await connect(c, error);
      Parser parser;
      if (!error) co_await send(c, request, error);
      if (!error) co_await receive(c, parser, arrival, answer, error);
      if (stopping_) co_return;
      if (kept && is_closed_by_server(error) && !parser.got_some()) {  // between two requests: this one is sent again
        c.open = false;
        continue;
      }
      c.open = !error && parser.get().keep_alive();
      const std::string text = error ? error.message() : std::string();
      if (!error) {
        answer.status = parser.get().result_int();
        answer.body = parser.get().body();
      }
      answer.error = text;
      end_ = Clock::now();
      answer.seconds = seconds_between(arrival, end_);
      on_answer_(answer);
      co_return;
    }
  }

  awaitable<void> send(Connection& c, int64_t request, error_code& error) {
    http::request<http::string_body> message(http::verb::post, load_.path, 11);
    message.set(http::field::host, host_);
    message.set(http::field::content_type, "application/json");
    message.body() = load_.bodies[static_cast<size_t>(request) % load_.bodies.size()];
    message.prepare_payload();
    c.stream.expires_after(duration_of(load_.timeout_seconds));
    co_await http::async_write(c.stream, message, redirect_error(use_awaitable, error));
  }

  awaitable<void> receive(Connection& c, Parser& parser, Clock::time_point arrival, LoadAnswer& answer,
                          error_code& error) {
    parser.body_limit(kMostAnswerBytes);
    parser.eager(true);
    while (!error && !parser.is_done()) {
      co_await http::async_read_some(c.stream, c.buffer, parser, redirect_error(use_awaitable, error));
      if (answer.first_event_seconds == 0 && parser.get()[http::field::content_type].starts_with("text/event-stream") &&
          parser.get().body().find("data:") != std::string::npos)
        answer.first_event_seconds = seconds_between(arrival, Clock::now());
    }
  }

  const Load& load_;
  const std::function<void(const LoadAnswer&)>& on_answer_;
  const std::string host_;  // with the port, as a URL has it
  bool stopping_ = false;
  Random random_;
  tcp::endpoint server_;
  int64_t next_request_ = 0;
  Clock::time_point begin_, end_, next_arrival_;
  std::optional<error_code> connect_error_;
  asio::io_context io_{1};
  std::list<Connection> connections_;  // destroyed before the context that they use
};

}  // namespace

double run_load(const Load& load, const std::function<void(const LoadAnswer&)>& on_answer) {
  return Client(load, on_answer).run();
}

}  // namespace attune::cli
