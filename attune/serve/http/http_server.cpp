#include "attune/serve/http/http_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "attune/serve/http/acceptors.h"
#include "attune/serve/http/beast_messages.h"
#include "attune/serve/http/body_share.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/http/sending.h"
#include "attune/serve/http/tls_context.h"

namespace attune::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::awaitable;
using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using RequestParser = http::request_parser<http::string_body>;

/// What ends a connection's wait: something to send, or bytes from its client.
struct Waker {
  asio::steady_timer timer;
  bool readable = false;

  explicit Waker(const asio::io_context::executor_type& executor) : timer(executor) {}
};

// Whether the peer has closed its side. Bytes that it has sent before stay where they are.
bool peer_is_gone(tcp::socket& socket) {
  pollfd descriptor{.fd = socket.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&descriptor, 1, 0) > 0 && (descriptor.revents & (POLLRDHUP | POLLERR | POLLHUP | POLLNVAL)) != 0;
}

// The time that a client has to take a part of an answer begins anew with each. A part is what the kernel takes at
// once: without this, up to a third of its buffer, which can be megabytes.
void send_in_small_parts(tcp::socket& socket) {
  constexpr int kUnsent = 128 << 10;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof(kUnsent));
}

// Most bytes that are kept unread. The parser limits headers and bodies, but neither the line before a chunk nor what
// follows the last one.
size_t most_buffered(const HttpOptions& options) {
  constexpr size_t kRead = 64 << 10;  // at once
  return std::max(static_cast<size_t>(options.header_bytes), kRead) + kRead;
}

// Counts one more while it lives.
struct Count {
  std::atomic<int64_t>& count;
  const int64_t now;
  explicit Count(std::atomic<int64_t>& c) : count(c), now(++c) {}
  Count(const Count&) = delete;
  Count& operator=(const Count&) = delete;
  ~Count() { --count; }
};

}  // namespace

struct HttpServer::Impl {
  HttpOptions options;
  Handler handler;
  Refuser refuser;
  ClientCheck is_known;
  std::optional<asio::ssl::context> tls;
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> answers{0};         // at work
  bool draining = false, stopped = false;  // of the server's thread, as is what follows
  const std::shared_ptr<BodyTotals> bodies = std::make_shared<BodyTotals>();
  std::unordered_set<beast::tcp_stream*> idle;  // connections without a request
  asio::io_context io{1};                       // destroyed before what its connections use
  std::vector<tcp::acceptor> acceptors;         // one for each address
  int64_t port = 0;
  std::thread thread;

  Impl(const HttpOptions& o, Handler h, Refuser r, ClientCheck k)
      : options(o), handler(std::move(h)), refuser(std::move(r)), is_known(std::move(k)) {}

  awaitable<void> accept(tcp::acceptor& acceptor);
  awaitable<void> connection(tcp::socket socket);
  template <class Stream>
  awaitable<void> requests(Stream& stream, const std::string& client);
  template <class Stream>
  awaitable<error_code> read_head(Stream& stream, beast::flat_buffer& buffer, RequestParser& parser, bool first);
  template <class Stream>
  awaitable<error_code> read_body(Stream& stream, beast::flat_buffer& buffer, RequestParser& parser, BodyShare& share);
  bool too_many_bodies(bool known) const;
  std::optional<HttpError> refusal_of(const error_code& error, bool known) const;
  template <class Stream>
  awaitable<bool> answer(Stream& stream, Exchange& exchange, const std::shared_ptr<Waker>& waker, unsigned version,
                         bool keep_alive);
  template <class Stream>
  awaitable<void> refuse(Stream& stream, HttpRequest request, HttpError error);
  static void watch(tcp::socket& socket, const std::shared_ptr<Waker>& waker);
};

awaitable<void> HttpServer::Impl::accept(tcp::acceptor& acceptor) {
  for (;;) {
    error_code error;
    tcp::socket socket(io);
    co_await acceptor.async_accept(socket, redirect_error(use_awaitable, error));
    if (!acceptor.is_open()) co_return;
    if (error) {  // too many open files: some will be closed
      asio::steady_timer pause(io, std::chrono::milliseconds(100));
      co_await pause.async_wait(redirect_error(use_awaitable, error));
      continue;
    }
    asio::co_spawn(io, connection(std::move(socket)), asio::detached);
  }
}

awaitable<void> HttpServer::Impl::connection(tcp::socket socket) {
  const Count count(connections);
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  send_in_small_parts(socket);
  const tcp::endpoint peer = socket.remote_endpoint(error);
  const std::string client = error ? std::string() : peer.address().to_string();
  beast::tcp_stream plain(std::move(socket));
  const bool full = count.now > options.connections;
  if (stopped) co_return;
  if (!tls) {
    if (full) {
      HttpRequest nothing{.client = client};
      co_await refuse(plain, std::move(nothing), HttpError(503, "too many connections"));
    } else {
      co_await requests(plain, client);
    }
    plain.socket().shutdown(tcp::socket::shutdown_both, error);
    co_return;
  }
  if (full) co_return;
  TlsStream stream(std::move(plain), *tls);
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  lowest.expires_after(milliseconds(options.header_seconds));
  idle.insert(&lowest);
  co_await stream.async_handshake(asio::ssl::stream_base::server, redirect_error(use_awaitable, error));
  idle.erase(&lowest);
  if (error) co_return;
  co_await requests(stream, client);
  lowest.expires_after(std::chrono::seconds(1));
  co_await stream.async_shutdown(redirect_error(use_awaitable, error));
}

template <class Stream>
awaitable<void> HttpServer::Impl::requests(Stream& stream, const std::string& client) {
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  const auto waker = std::make_shared<Waker>(io.get_executor());
  beast::flat_buffer buffer(most_buffered(options));
  for (bool first = true; !stopped; first = false) {
    RequestParser parser;
    parser.header_limit(static_cast<uint32_t>(options.header_bytes));
    parser.body_limit(static_cast<uint64_t>(options.body_bytes));
    error_code error = co_await read_head(stream, buffer, parser, first);
    HttpRequest request = head_of(parser.get(), client);  // now: fields behind the body do not count
    const bool keep_alive = parser.get().keep_alive();
    const unsigned version = parser.get().version();
    std::optional<HttpError> fault;
    if (!error) fault = fault_of(parser.get());
    if (fault) co_return co_await refuse(stream, std::move(request), *fault);
    if (!error && version >= 11 && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, version);
      co_await http::async_write(stream, go_on, redirect_error(use_awaitable, error));
    }
    auto share = std::make_unique<BodyShare>(bodies, !error && is_known(request));
    if (!error) error = co_await read_body(stream, buffer, parser, *share);
    fault = refusal_of(error, share->known());
    if (fault) {
      std::string().swap(parser.get().body());  // its memory too, before the client reads the answer
      share.reset();
      co_return co_await refuse(stream, std::move(request), *fault);
    }
    if (error) co_return;
    request.body = std::move(parser.get().body());
    waker->readable = false;
    const auto wake = [waker, executor = io.get_executor()] {
      asio::post(executor, [waker] { waker->timer.cancel(); });
    };
    const auto exchange = std::make_shared<Exchange>(std::move(request), wake,
                                                     static_cast<size_t>(options.unsent_bytes), std::move(share));
    handler(exchange);
    const bool goes_on = co_await answer(stream, *exchange, waker, version, keep_alive);
    exchange->abandon();
    lowest.socket().cancel(error);  // the watch
    if (!goes_on) co_return;
  }
}

// `first`: the request is the first one of its connection.
template <class Stream>
awaitable<error_code> HttpServer::Impl::read_head(Stream& stream, beast::flat_buffer& buffer, RequestParser& parser,
                                                  bool first) {
  constexpr size_t kRead = 4096;
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  error_code error;
  idle.insert(&lowest);
  if (!first && buffer.size() == 0) {
    lowest.expires_after(milliseconds(options.idle_seconds));
    const size_t read = co_await stream.async_read_some(buffer.prepare(kRead), redirect_error(use_awaitable, error));
    buffer.commit(read);
  }
  if (!error) {
    lowest.expires_after(milliseconds(options.header_seconds));
    co_await http::async_read_header(stream, buffer, parser, redirect_error(use_awaitable, error));
  }
  idle.erase(&lowest);
  co_return error;
}

// Unknown clients may take half: /translate has its key in the body, so that nobody can be refused before it is read.
bool HttpServer::Impl::too_many_bodies(bool known) const {
  const int64_t most = std::max(options.bodies_bytes, 2 * options.body_bytes), unknown = bodies->unknown;
  return bodies->known + unknown > most || (!known && unknown > most / 2);
}

template <class Stream>
awaitable<error_code> HttpServer::Impl::read_body(Stream& stream, beast::flat_buffer& buffer, RequestParser& parser,
                                                  BodyShare& share) {
  error_code error;
  beast::get_lowest_layer(stream).expires_after(milliseconds(options.body_seconds));
  parser.eager(true);
  while (!error && !parser.is_done()) {
    co_await http::async_read_some(stream, buffer, parser, redirect_error(use_awaitable, error));
    share.set(parser.get().body().size());
    if (!error && too_many_bodies(share.known())) error = make_error_code(boost::system::errc::not_enough_memory);
  }
  co_return error;
}

// What the client is told of an error of reading; none: nothing.
std::optional<HttpError> HttpServer::Impl::refusal_of(const error_code& error, bool known) const {
  if (error == http::error::header_limit) return HttpError(431, "the headers are too long");
  if (error == http::error::buffer_overflow)
    return HttpError(431, "the line before a chunk, or what follows the last one, is too long");
  if (error == http::error::body_limit)
    return HttpError(413, fmt::format("the body has more than {} bytes", options.body_bytes));
  if (error == boost::system::errc::not_enough_memory)
    return HttpError(503, fmt::format("the bodies of the requests that are not answered have more bytes than "
                                      "http.bodies_bytes allows{}",
                                      known ? "" : " for requests without a known key in a header"));
  if (error && error != http::error::end_of_stream &&
      error.category() == make_error_code(http::error::bad_method).category())
    return HttpError(400, "this is not HTTP: " + error.message());
  return {};
}

// Says once for each request that the client has sent something. answer() then looks every 50 ms whether it has gone: a
// client may send further requests without waiting for answers.
void HttpServer::Impl::watch(tcp::socket& socket, const std::shared_ptr<Waker>& waker) {
  socket.async_wait(tcp::socket::wait_read, [waker](const error_code& error) {
    if (error) return;
    waker->readable = true;
    waker->timer.cancel();
  });
}

// Sends the answer. Returns whether the connection can take another request.
template <class Stream>
awaitable<bool> HttpServer::Impl::answer(Stream& stream, Exchange& exchange, const std::shared_ptr<Waker>& waker,
                                         unsigned version, bool keep_alive) {
  struct Abandon {  // also when the server ends and this coroutine is never resumed
    Exchange& exchange;
    ~Abandon() { exchange.abandon(); }
  };
  const Abandon at_end{exchange};
  const Count count(answers);
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  const bool head_only = exchange.request().method == "HEAD";
  const bool chunked = version >= 11;  // a stream for an older client ends with the connection
  lowest.expires_never();
  watch(lowest.socket(), waker);
  for (;;) {
    Exchange::Outgoing out = exchange.take();
    if (*exchange.gone()) co_return false;  // the client has left too much unread
    error_code error;
    if (out.empty()) {
      if (waker->readable && peer_is_gone(lowest.socket())) co_return false;
      const auto wait = waker->readable ? std::chrono::milliseconds(50) : std::chrono::hours(24);
      waker->timer.expires_after(wait);
      co_await waker->timer.async_wait(redirect_error(use_awaitable, error));
      continue;
    }
    if (out.head) keep_alive = keep_alive && !draining;
    if (out.head && !out.streamed) {
      const bool sent =
          co_await send_whole(stream, std::move(*out.head), version, keep_alive, head_only, options.write_seconds);
      co_return sent&& keep_alive;
    }
    if (out.head) {
      auto head = message_of<http::empty_body>(*out.head, version, keep_alive && chunked);
      head.chunked(chunked);
      http::response_serializer<http::empty_body> serializer(head);
      lowest.expires_after(milliseconds(options.write_seconds));
      co_await http::async_write_header(stream, serializer, redirect_error(use_awaitable, error));
    }
    if (!error && !out.piece.empty()) {
      const asio::const_buffer bytes(out.piece.data(), out.piece.size());
      if (chunked) {
        error = co_await send_piece(stream, http::make_chunk(bytes), options.write_seconds);
      } else {
        error = co_await send_piece(stream, bytes, options.write_seconds);
      }
    }
    if (!error && out.ended && chunked) {
      error = co_await send_piece(stream, http::make_chunk_last(), options.write_seconds);
    }
    if (error) co_return false;
    if (out.ended) co_return keep_alive&& chunked;
    lowest.expires_never();
  }
}

// Sends the answer, then reads on for a moment: the client loses the answer if the connection is closed with bytes
// unread.
template <class Stream>
awaitable<void> HttpServer::Impl::refuse(Stream& stream, HttpRequest request, HttpError why) {
  constexpr double kMoment = 1;  // seconds
  beast::tcp_stream& lowest = beast::get_lowest_layer(stream);
  if (!co_await send_whole(stream, refuser(request, why), 11, false, request.method == "HEAD", kMoment)) co_return;
  lowest.expires_after(milliseconds(kMoment));
  error_code error;
  lowest.socket().shutdown(tcp::socket::shutdown_send, error);
  std::array<char, 16384> rest;
  while (!error) co_await lowest.async_read_some(asio::buffer(rest), redirect_error(use_awaitable, error));
}

HttpResponse HttpServer::plain_refusal(const HttpRequest&, const HttpError& why) {
  return {.status = why.status(), .body = fmt::format("{{\"error\":\"{}\"}}", why.what())};
}

HttpServer::HttpServer(const HttpOptions& options, Handler handler, Refuser refuser, ClientCheck is_known)
    : impl_(std::make_unique<Impl>(options, std::move(handler), std::move(refuser), std::move(is_known))) {
  impl_->tls = tls_context_of(options);
  impl_->acceptors = listen_at_all_addresses(impl_->io, options.host, options.port);
  impl_->port = impl_->acceptors.front().local_endpoint().port();
  for (tcp::acceptor& acceptor : impl_->acceptors) asio::co_spawn(impl_->io, impl_->accept(acceptor), asio::detached);
  impl_->thread = std::thread([impl = impl_.get()] { impl->io.run(); });
}

HttpServer::~HttpServer() {
  impl_->io.stop();
  impl_->thread.join();
}

int64_t HttpServer::port() const {
  return impl_->port;
}
int64_t HttpServer::connections() const {
  return impl_->connections;
}
int64_t HttpServer::answers() const {
  return impl_->answers;
}

void HttpServer::drain() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->draining = true; });
}

void HttpServer::stop_accepting() {
  asio::post(impl_->io, [impl = impl_.get()] {
    error_code ignored;
    for (tcp::acceptor& acceptor : impl->acceptors) acceptor.close(ignored);
    impl->draining = impl->stopped = true;
    for (beast::tcp_stream* stream : impl->idle) stream->cancel();
  });
}

}  // namespace attune::serve
