// HTTPS, with a certificate that openssl makes for the test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <mutex>
#include <optional>

#include "attune/serve/http/http_error.h"
#include "attune/serve/http/http_server.h"
#include "tests/support/errors.h"
#include "tests/support/http_client.h"
#include "tests/support/run_command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A client that trusts one certificate.
class TlsClient {
 public:
  TlsClient(int64_t port, const std::filesystem::path& certificate, int newest_version = TLS1_3_VERSION)
      : connection_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), newest_version);
    SSL_CTX_set_cipher_list(context_.get(), "DEFAULT:@SECLEVEL=0");  // old versions need it
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_load_verify_locations(context_.get(), certificate.c_str(), nullptr);
    session_.reset(SSL_new(context_.get()));
    SSL_set_fd(session_.get(), connection_.descriptor());
    connected_ = SSL_connect(session_.get()) == 1;
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(session_.get()); }
  void send(std::string_view bytes) { SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())); }
  /// Up to the end of the connection, or until `text` is there.
  std::string read_until(std::string_view text) {
    std::string arrived;
    char piece[4096];
    while (arrived.find(text) == std::string::npos) {
      const int count = SSL_read(session_.get(), piece, sizeof(piece));
      if (count <= 0) break;
      arrived.append(piece, static_cast<size_t>(count));
    }
    return arrived;
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* session) const { SSL_free(session); }
  };
  HttpClient connection_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> session_;
  bool connected_ = false;
};

class Tls : public ::testing::Test {
 protected:
  // A key, and a certificate for 127.0.0.1 that it has signed itself.
  void make_certificate(const std::string& name) const {
    const CommandResult made =
        run_command({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                     file(name + ".key"), "-out", file(name + ".pem")});
    ASSERT_EQ(made.status, 0) << made.errors;
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  void serve(double header_seconds = 1) {
    ASSERT_NO_FATAL_FAILURE(make_certificate("server"));
    const HttpOptions options{.port = 0,
                              .tls_certificate = file("server.pem"),
                              .tls_key = file("server.key"),
                              .header_seconds = header_seconds};
    server_.emplace(options, [this](const std::shared_ptr<Exchange>& exchange) {
      if (exchange->request().path != "/wait") return exchange->respond({.body = "hello " + exchange->request().path});
      const std::lock_guard lock(mutex_);
      waiting_ = exchange;
    });
  }
  std::shared_ptr<Exchange> waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  TemporaryFolder folder_;
  std::mutex mutex_;
  std::shared_ptr<Exchange> waiting_;
  std::optional<HttpServer> server_;  // goes first
};

TEST_F(Tls, AnswersWithItsCertificate) {
  ASSERT_NO_FATAL_FAILURE(serve());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server_->port(), file("server.pem"), version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.version(), version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3");
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.read_until("hello /1"), StartsWith("HTTP/1.1 200 OK"));
    client.send("GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(client.read_until("no end"), HasSubstr("hello /2"));
  }
}

TEST_F(Tls, OtherCertificatesOldVersionsAndPlainHttpGetNothing) {
  ASSERT_NO_FATAL_FAILURE(serve());
  ASSERT_NO_FATAL_FAILURE(make_certificate("other"));
  EXPECT_FALSE(TlsClient(server_->port(), file("other.pem")).connected()) << "the client must see the certificate";
  EXPECT_FALSE(TlsClient(server_->port(), file("server.pem"), TLS1_1_VERSION).connected());
  HttpClient plain(server_->port());
  plain.get("/");
  EXPECT_THAT(plain.read_all(), ::testing::Not(HasSubstr("hello")));
  HttpClient silent(server_->port());
  silent.read_all();
  EXPECT_TRUE(silent.closed()) << "a handshake has its time";
  EXPECT_TRUE(becomes([&] { return server_->connections() == 0; }));
}

TEST_F(Tls, AServerThatEndsWaitsForNoHandshake) {
  ASSERT_NO_FATAL_FAILURE(serve(600));
  const HttpClient silent(server_->port());
  ASSERT_TRUE(becomes([&] { return server_->connections() == 1; }));
  server_->stop_accepting();
  EXPECT_TRUE(becomes([&] { return server_->connections() == 0; }));
}

TEST_F(Tls, AClientThatGoesAwayIsNoticed) {
  ASSERT_NO_FATAL_FAILURE(serve());
  {
    TlsClient client(server_->port(), file("server.pem"));
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(becomes([&] { return waiting() != nullptr; }));
    EXPECT_FALSE(*waiting()->gone());
  }
  EXPECT_TRUE(becomes([&] { return waiting()->gone()->load(); }, 1));
}

TEST_F(Tls, FilesThatDoNotFitAreNamed) {
  ASSERT_NO_FATAL_FAILURE(make_certificate("one"));
  ASSERT_NO_FATAL_FAILURE(make_certificate("two"));
  const auto refusal = [&](const std::string& certificate, const std::string& key) {
    return message_of<ConfigError>([&] {
      HttpServer({.port = 0, .tls_certificate = file(certificate), .tls_key = file(key)}, [](const auto&) {});
    });
  };
  EXPECT_THAT(refusal("one.pem", "two.key"), HasSubstr("tls_key"));
  EXPECT_THAT(refusal("one.key", "one.key"), HasSubstr("tls_certificate"));
  EXPECT_THAT(refusal("none.pem", "one.key"), HasSubstr("tls_certificate"));
  EXPECT_THAT(refusal("one.pem", "one.pem"), HasSubstr("tls_key"));
  const CommandResult locked = run_command(
      {"openssl", "pkey", "-in", file("one.key"), "-aes256", "-passout", "pass:secret", "-out", file("locked.key")});
  ASSERT_EQ(locked.status, 0) << locked.errors;
  EXPECT_THAT(refusal("one.pem", "locked.key"), HasSubstr("locked.key: is encrypted, needs a key without a password"));
}

}  // namespace
}  // namespace attune::serve
