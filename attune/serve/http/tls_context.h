#pragma once

#include <boost/asio/ssl/context.hpp>
#include <optional>

#include "attune/serve/http/http_server.h"

namespace attune::serve {

/// What TLS needs, with the certificate and the key of the options; none where they name neither. Throws ConfigError
/// for files that cannot be used, and for a key that has a password: nobody is there to be asked for it.
std::optional<boost::asio::ssl::context> tls_context_of(const HttpOptions& options);

}  // namespace attune::serve
