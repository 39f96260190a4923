#pragma once
// Pages of which origin ask: browsers say it in the header Origin (RFC 6454).

#include <string_view>

namespace attune::serve {

/// Whether a page of this origin, "https://attune.example:8443", is one of the server that is asked as `host`, the
/// header Host. Host and port are compared, not the scheme: a proxy may speak TLS for the server.
bool is_own_origin(std::string_view origin, std::string_view host);

}  // namespace attune::serve
