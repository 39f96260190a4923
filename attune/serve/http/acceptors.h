#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace attune::serve {

/// Listens at every address of `host` that this machine has, at one port; port 0: one that is free. Throws ConfigError
/// for a port that is no number of a port or is taken, and for a host without an address of this machine.
std::vector<boost::asio::ip::tcp::acceptor> listen_at_all_addresses(boost::asio::io_context& io,
                                                                    const std::string& host, int64_t port);

}  // namespace attune::serve
