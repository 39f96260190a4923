#pragma once
// Errors that are answers.

#include <exception>
#include <string>

#include "attune/base/error.h"

namespace attune::serve {

/// Ends a request with a status. The message is for the client.
class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message, std::string field = "", std::string code = "")
      : Error(message), status_(status), field_(std::move(field)), code_(std::move(code)) {}

  int status() const { return status_; }
  /// The field of the request that is wrong, "" for none.
  const std::string& field() const { return field_; }
  /// A word for programs, "" for none: "model_not_found".
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string field_, code_;
};

/// 429 and 503 say after how many seconds to try again.
inline constexpr int kRetrySeconds = 1;

/// What a request gets whose deadline is over (504).
HttpError deadline_error();

/// Makes an answer of any error. An HttpError stays as it is. What is wrong with a text or an option is a 400, or a 413
/// if it is too large; its field is the one that the message begins with, as in "top_p = 0: ..." or "prompt: ...". Too
/// little memory is a 503. Everything else is a 500 whose message says nothing about the program. `field` is to blame
/// for a request that is too large as a whole.
HttpError as_http_error(const std::exception_ptr& error, const std::string& field = "");

/// "Not Found"
const char* reason_phrase(int status);

}  // namespace attune::serve
