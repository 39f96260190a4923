#pragma once
// The fields of a request's body.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attune/base/json_fields.h"
#include "attune/serve/http/message.h"

namespace attune::serve {

/// The fields of a JSON object, or of a form, whose strings are converted to what is asked for. Every reader throws
/// HttpError (400) naming the field; null counts as no value.
class RequestFields {
 public:
  /// Reads the body by its Content-Type: application/json (also without the header), application/x-www-form-urlencoded,
  /// multipart/form-data. Throws HttpError 400 for what is neither an object nor a form, 415 for another type.
  explicit RequestFields(const HttpRequest& request);

  std::optional<std::string> text(const char* name);
  std::string required_text(const char* name);
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most);
  std::optional<double> number(const char* name, double least, double most);
  std::optional<bool> flag(const char* name);
  /// One text or a list of them; at most `most`.
  std::vector<std::string> texts(const char* name, int64_t most);
  /// The value as it is; null where there is none.
  const Json& value(const char* name);
  bool is_list(const char* name);
  /// A field that is understood but not supported: an error unless it is absent, null, or equal to `harmless`.
  void refuse(const char* name, const Json& harmless = nullptr);
  /// Ignores these fields.
  void ignore(std::initializer_list<const char*> names);
  /// Throws for a field that nobody has asked for.
  void finish() const;

 private:
  Json object_ = Json::object();
  bool form_ = false;
  std::set<std::string> known_;
};

/// Throws HttpError (400) with the message "FIELD: WHAT".
[[noreturn]] void refuse_field(const std::string& field, const std::string& what);

/// Throws HttpError (413) naming the field where its texts have more tokens than `most`.
void check_tokens(const std::string& field, int64_t tokens, int64_t most);

}  // namespace attune::serve
