#include "attune/serve/origin.h"

#include <boost/asio/ip/address.hpp>

#include <algorithm>

#include "attune/base/ascii.h"

namespace attune::serve {
namespace {

std::string_view without(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ascii_lower, ascii_lower);
}

bool is_address(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(bracketed ? host.substr(1, host.size() - 2) : host), error);
  return !error;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool in_small_name(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.' || c == '_';
}

// Where the port begins with its colon; the end of `host` where it has none.
size_t port_of(std::string_view host) {
  const size_t colon = host.rfind(':');
  return colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos ? host.size() : colon;
}

}  // namespace

bool is_origin(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos) return false;
  const std::string_view scheme = text.substr(0, colon), host = text.substr(colon + 3);
  const std::string_view name = host.substr(0, port_of(host)), port = host.substr(name.size());
  const bool is_name = !name.empty() && std::ranges::all_of(name, in_small_name);
  const bool default_port = (scheme == "https" && port == ":443") || (scheme == "http" && port == ":80");
  return !scheme.empty() && std::ranges::all_of(scheme, in_small_name) &&
         (is_name || (name.starts_with('[') && is_address(name))) &&
         (port.empty() || (port.size() > 1 && std::ranges::all_of(port.substr(1), is_digit))) && !default_port;
}

bool is_host(std::string_view text) {
  const auto in_name = [](char c) { return in_small_name(ascii_lower(c)); };
  return is_address(text) || (!text.empty() && std::ranges::all_of(text, in_name));
}

bool is_own_origin(std::string_view origin, std::string_view host) {
  const size_t colon = origin.find("://");
  if (colon == std::string_view::npos) return false;  // "null": a page without an origin
  const std::string_view default_port = origin.substr(0, colon) == "https" ? ":443" : ":80";
  const std::string_view asking = without(origin.substr(colon + 3), default_port);
  return same_name(asking, without(host, default_port));
}

bool is_own_host(std::string_view host, std::span<const std::string> names) {
  const std::string_view name = host.substr(0, port_of(host));
  return same_name(name, "localhost") || is_address(name) ||
         std::ranges::any_of(names, [&](const std::string& own) { return same_name(name, own); });
}

}  // namespace attune::serve
