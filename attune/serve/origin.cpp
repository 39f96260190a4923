#include "attune/serve/origin.h"

#include <boost/asio/ip/address.hpp>

#include <algorithm>

namespace attune::serve {
namespace {

char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view without(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, small_letter, small_letter);
}

bool is_address(std::string_view host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(bracketed ? host.substr(1, host.size() - 2) : host), error);
  return !error;
}

}  // namespace

bool is_own_origin(std::string_view origin, std::string_view host) {
  const size_t colon = origin.find("://");
  if (colon == std::string_view::npos) return false;  // "null": a page without an origin
  const std::string_view default_port = origin.substr(0, colon) == "https" ? ":443" : ":80";
  const std::string_view asking = without(origin.substr(colon + 3), default_port);
  return same_name(asking, without(host, default_port));
}

bool is_own_host(std::string_view host, std::span<const std::string> names) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  const std::string_view name = has_port ? host.substr(0, colon) : host;
  return same_name(name, "localhost") || is_address(name) ||
         std::ranges::any_of(names, [&](const std::string& own) { return same_name(name, own); });
}

}  // namespace attune::serve
