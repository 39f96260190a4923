#pragma once
// What a client sends and what it gets, without sockets.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::serve {

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = {};    // "GET"
  std::string path = {};      // of the target, without host and query
  std::string query = {};     // what follows '?', as sent
  HeaderFields headers = {};  // names in lower case; "host" is that of the target where it has one
  std::string body = {};
  std::string client = {};  // its address

  /// The value of a header, "" where there is none.
  std::string_view header(std::string_view lower_case_name) const {
    for (const auto& [name, value] : headers)
      if (name == lower_case_name) return value;
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  HeaderFields headers = {};
};

}  // namespace attune::serve
