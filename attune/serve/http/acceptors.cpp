#include "attune/serve/http/acceptors.h"

#include <optional>
#include <utility>

#include "attune/base/fail.h"
#include "attune/serve/http/host_addresses.h"

namespace attune::serve {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Nothing for an address that this machine does not have: "localhost" may have one of a protocol that is off.
std::optional<tcp::acceptor> listen_at(boost::asio::io_context& io, const std::string& address, int64_t port) {
  error_code error;
  const auto check = [&] {
    if (error) fail<ConfigError>("{}: {}", authority_of(address, port), error.message());
  };
  const tcp::endpoint endpoint(boost::asio::ip::make_address(address, error), static_cast<uint16_t>(port));
  check();
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (error == boost::system::errc::address_family_not_supported) return {};
  check();
  acceptor.set_option(boost::asio::socket_base::reuse_address(true), error);
  check();
  acceptor.bind(endpoint, error);
  if (error == boost::system::errc::address_not_available) return {};
  check();
  acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  check();
  return acceptor;
}

// At one port: where it is 0, at the one that the first address is given.
std::vector<tcp::acceptor> listen_at_one_port(boost::asio::io_context& io, const std::vector<std::string>& addresses,
                                              int64_t port) {
  std::vector<tcp::acceptor> acceptors;
  for (const std::string& address : addresses) {
    auto acceptor = listen_at(io, address, port);
    if (!acceptor) continue;
    port = acceptor->local_endpoint().port();
    acceptors.push_back(std::move(*acceptor));
  }
  return acceptors;
}

}  // namespace

std::vector<tcp::acceptor> listen_at_all_addresses(boost::asio::io_context& io, const std::string& host, int64_t port) {
  if (port < 0 || port > 65535) fail<ConfigError>("port = {}: needs a number from 0 to 65535", port);
  const std::vector<std::string> addresses = addresses_of(host);
  std::vector<tcp::acceptor> acceptors;
  for (int tries = port == 0 ? 10 : 1; acceptors.empty() && tries > 0; --tries) {
    try {
      acceptors = listen_at_one_port(io, addresses, port);
    } catch (const ConfigError&) {  // the port that is free at one address may be in use at another
      if (tries == 1) throw;
    }
  }
  if (acceptors.empty()) fail<ConfigError>("host = \"{}\": this machine has no such address", host);
  return acceptors;
}

}  // namespace attune::serve
