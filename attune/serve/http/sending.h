#pragma once
// Sends answers over a connection, with TLS or without. A client has a limited time for each part that it takes, not
// for the whole: a download may be slow as long as it goes on.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_suffix.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <utility>

#include "attune/serve/http/beast_messages.h"
#include "attune/serve/http/message.h"

namespace attune::serve {

inline std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

/// Sends an answer. Returns whether all of it was sent. A client has `seconds` for each part that it takes.
template <class Stream>
boost::asio::awaitable<bool> send_whole(Stream& stream, HttpResponse response, unsigned version, bool keep_alive,
                                        bool head_only, double seconds) {
  namespace http = boost::beast::http;
  using boost::asio::redirect_error, boost::asio::use_awaitable;
  auto& lowest = boost::beast::get_lowest_layer(stream);
  auto message = message_of<http::string_body>(response, version, keep_alive);
  message.body() = std::move(response.body);
  if (response.status != 204) message.prepare_payload();
  boost::system::error_code error;
  http::response_serializer<http::string_body> serializer(message);
  if (head_only) {
    lowest.expires_after(milliseconds(seconds));
    co_await http::async_write_header(stream, serializer, redirect_error(use_awaitable, error));
    co_return !error;
  }
  while (!error && !serializer.is_done()) {
    lowest.expires_after(milliseconds(seconds));
    co_await http::async_write_some(stream, serializer, redirect_error(use_awaitable, error));
  }
  co_return !error;
}

/// Sends bytes of a stream. A client has `seconds` for each part that it takes.
template <class Stream, class Buffers>
boost::asio::awaitable<boost::system::error_code> send_piece(Stream& stream, Buffers buffers, double seconds) {
  using boost::asio::redirect_error, boost::asio::use_awaitable;
  auto& lowest = boost::beast::get_lowest_layer(stream);
  boost::beast::buffers_suffix<Buffers> rest(buffers);
  boost::system::error_code error;
  while (!error && boost::beast::buffer_bytes(rest) > 0) {
    lowest.expires_after(milliseconds(seconds));
    const size_t sent = co_await stream.async_write_some(rest, redirect_error(use_awaitable, error));
    rest.consume(sent);
  }
  co_return error;
}

}  // namespace attune::serve
