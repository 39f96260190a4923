#pragma once
// Checks the headers Origin (RFC 6454) and Host: in these a browser says where the asking page is from, and whom it
// asks.

#include <span>
#include <string>
#include <string_view>

namespace attune::serve {

/// Whether the text is an origin as browsers write it: "https://attune.example:8443", in small letters, without a path
/// and without the scheme's own port.
bool is_origin(std::string_view text);

/// Whether the text is the name of a host or an address, as a header Host has it without its port.
bool is_host(std::string_view text);

/// Whether an origin, "https://attune.example:8443", is the server's own. `host` is the header Host of the request.
/// Host and port are compared, not the scheme: a proxy may speak TLS for the server.
bool is_own_origin(std::string_view origin, std::string_view host);

/// Whether the header Host has an address, "localhost" or one of `names`, with a port or without. Another name can lead
/// here because somebody else's name server says so (DNS rebinding): for a browser, his page is then one of this
/// server.
bool is_own_host(std::string_view host, std::span<const std::string> names);

}  // namespace attune::serve
