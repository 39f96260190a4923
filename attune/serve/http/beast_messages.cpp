#include "attune/serve/http/beast_messages.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <ctime>
#include <string_view>
#include <utility>

#include "attune/base/ascii.h"

namespace attune::serve {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// Takes scheme and host from a target that begins with them. Returns the host, "" where the target is a path.
std::string take_host(std::string& target) {
  const std::string begin = ascii_lowercase(std::string_view(target).substr(0, 8));
  const size_t host = begin.starts_with("http://") ? 7 : begin.starts_with("https://") ? 8 : 0;
  if (host == 0) return "";
  const size_t end = std::min(target.find_first_of("/?", host), target.size());
  std::string found = target.substr(host, end - host);
  target.erase(0, end);
  if (!target.starts_with('/')) target.insert(0, "/");
  return found;
}

}  // namespace

HttpRequest head_of(const BeastRequest& message, std::string client) {
  HttpRequest request{.method = std::string(message.method_string()), .path = std::string(message.target())};
  std::string host = take_host(request.path);
  if (const size_t question = request.path.find('?'); question != std::string::npos) {
    request.query = request.path.substr(question + 1);
    request.path.resize(question);
  }
  for (const auto& field : message)
    if (host.empty() || field.name() != http::field::host)
      request.headers.emplace_back(ascii_lowercase(std::string(field.name_string())), std::string(field.value()));
  if (!host.empty()) request.headers.emplace_back("host", std::move(host));
  request.client = std::move(client);
  return request;
}

// If a proxy and this server disagreed about where a body ends, or in what coding it is, the rest of the body would be
// read as the next request (RFC 9112, sections 6.1 and 3.2).
std::optional<HttpError> fault_of(const BeastRequest& message) {
  const auto [first, last] = message.equal_range(http::field::transfer_encoding);
  if (first != last && message.version() < 11) return HttpError(400, "HTTP/1.0 has no transfer codings");
  if (!std::all_of(first, last, [](const auto& field) { return beast::iequals(field.value(), "chunked"); }))
    return HttpError(501, "the only transfer coding is chunked");
  const size_t hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11))
    return HttpError(400, fmt::format("a request has one header Host, this one has {}", hosts));
  return {};
}

std::string now_as_date() {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

}  // namespace attune::serve
