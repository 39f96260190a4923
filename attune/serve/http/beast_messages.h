#pragma once
// Requests and answers in the form of Boost.Beast.

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "attune/serve/http/http_error.h"
#include "attune/serve/http/message.h"

namespace attune::serve {

using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;

/// Returns the request without its body, as far as it has been read. A host in the target,
/// "http://attune.example:8080/health", takes the place of the header Host (RFC 9112, section 3.2.2).
HttpRequest head_of(const BeastRequest& message, std::string client);

/// Returns why a request with these headers is refused; none: it is not.
std::optional<HttpError> fault_of(const BeastRequest& message);

/// The time now as HTTP has it: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string now_as_date();

/// An answer without its body.
template <class Body>
boost::beast::http::response<Body> message_of(const HttpResponse& response, unsigned version, bool keep_alive) {
  namespace http = boost::beast::http;
  http::response<Body> message(static_cast<http::status>(response.status), version);
  message.reason(reason_phrase(response.status));
  message.set(http::field::date, now_as_date());
  if (response.status != 204) message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keep_alive);
  return message;
}

}  // namespace attune::serve
