#include "attune/serve/http/tls_context.h"

#include <memory>
#include <string>

#include "attune/base/fail.h"

namespace attune::serve {

std::optional<boost::asio::ssl::context> tls_context_of(const HttpOptions& options) {
  using boost::asio::ssl::context;
  if (options.tls_certificate.empty() != options.tls_key.empty())
    fail<ConfigError>("tls_certificate and tls_key: one of them is missing");
  if (options.tls_certificate.empty()) return {};
  context tls(context::tls_server);
  tls.set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                  context::no_tlsv1_1);
  const auto encrypted = std::make_shared<bool>(false);
  tls.set_password_callback([encrypted](size_t, context::password_purpose) {  // OpenSSL's own asks at the terminal
    *encrypted = true;
    return std::string();
  });
  boost::system::error_code error;
  tls.use_certificate_chain_file(options.tls_certificate, error);
  if (error) fail<ConfigError>("tls_certificate = {}: {}", options.tls_certificate, error.message());
  tls.use_private_key_file(options.tls_key, context::pem, error);
  if (error && *encrypted)
    fail<ConfigError>("tls_key = {}: is encrypted, needs a key without a password", options.tls_key);
  if (error) fail<ConfigError>("tls_key = {}: {}", options.tls_key, error.message());
  return tls;
}

}  // namespace attune::serve
