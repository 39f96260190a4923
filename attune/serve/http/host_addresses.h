#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attune::serve {

/// Returns the addresses of a host as numbers, in the system's order: of "localhost" 127.0.0.1 and perhaps ::1, of an
/// address itself. Throws ConfigError naming a host that has none.
std::vector<std::string> addresses_of(const std::string& host);

/// Whether only this machine reaches an address.
bool is_loopback(const std::string& address);

/// "[::1]:8080": host and port as a URL has them.
std::string authority_of(const std::string& host, int64_t port);

}  // namespace attune::serve
