#include "attune/serve/http/host_addresses.h"

#include <netdb.h>

#include <algorithm>
#include <memory>

#include "attune/base/fail.h"

namespace attune::serve {

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &first); error != 0)
    fail<ConfigError>("host = \"{}\": is no address and no name of this machine: {}", host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(first, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::find(addresses.begin(), addresses.end(), text) == addresses.end()) addresses.emplace_back(text);
  }
  if (addresses.empty()) fail<ConfigError>("host = \"{}\": has no address", host);
  return addresses;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string authority_of(const std::string& host, int64_t port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
}

}  // namespace attune::serve
