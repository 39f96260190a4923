#include "attune/serve/origin.h"

#include <algorithm>

namespace attune::serve {
namespace {

char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string_view without(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

}  // namespace

bool is_own_origin(std::string_view origin, std::string_view host) {
  const size_t colon = origin.find("://");
  if (colon == std::string_view::npos) return false;  // "null": a page without an origin
  const std::string_view default_port = origin.substr(0, colon) == "https" ? ":443" : ":80";
  const std::string_view asking = without(origin.substr(colon + 3), default_port);
  return std::ranges::equal(asking, without(host, default_port), {}, small_letter, small_letter);
}

}  // namespace attune::serve
