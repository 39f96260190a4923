#include "attune/serve/routes/request_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "attune/base/ascii.h"
#include "attune/base/cut_text.h"
#include "attune/io/json_file.h"
#include "attune/serve/http/form.h"
#include "attune/serve/http/http_error.h"
#include "attune/text/text_file.h"

namespace attune::serve {
namespace {

const Json kNothing = nullptr;

// Several values of one name become a list, as in q=one&q=two.
Json object_of(const FormFields& fields) {
  Json object = Json::object();
  for (const auto& [name, value] : fields) {
    if (!valid_utf8(name) || !valid_utf8(value)) throw HttpError(400, "the form is not valid UTF-8");
    Json& place = object[name];
    if (place.is_null()) {
      place = value;
    } else if (place.is_array()) {
      place.push_back(value);
    } else {
      place = Json::array({place, value});
    }
  }
  return object;
}

template <class T>
std::optional<T> parsed(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::string media_type(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return ascii_lowercase(type);
}

// No field of a form has a name that begins so.
bool looks_like_json(std::string_view body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
}

}  // namespace

void refuse_field(const std::string& field, const std::string& what) {
  throw HttpError(400, field + ": " + what, field);
}

void check_tokens(const std::string& field, int64_t tokens, int64_t most) {
  if (tokens > most)
    throw HttpError(413, fmt::format("{}: has {} tokens, at most {} are accepted", field, tokens, most), field);
}

RequestFields::RequestFields(const HttpRequest& request) {
  const std::string_view content_type = request.header("content-type");
  const std::string type = media_type(content_type);
  form_ = type == "application/x-www-form-urlencoded" || type == "multipart/form-data";
  if (type == "application/x-www-form-urlencoded") {
    if (looks_like_json(request.body))  // curl -d says that it is a form
      throw HttpError(415, "Content-Type: is " + type + ", but the body is JSON, which needs application/json");
    object_ = object_of(parse_urlencoded_form(request.body));
  } else if (type == "multipart/form-data") {
    object_ = object_of(parse_multipart_form(request.body, content_type));
  } else if (type.empty() || type == "application/json") {
    if (request.body.empty())
      throw HttpError(400, request.query.empty()
                               ? "body: is empty, needs a JSON object"
                               : "body: is empty; the fields behind the ? of the address belong there");
    try {
      object_ = parse_json(request.body, "body");
    } catch (const FileError& error) {
      throw HttpError(400, error.what());
    }
    if (!object_.is_object()) throw HttpError(400, "body: needs a JSON object");
  } else {
    throw HttpError(415,
                    "Content-Type: needs application/json, application/x-www-form-urlencoded or "
                    "multipart/form-data");
  }
}

const Json& RequestFields::value(const char* name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() ? kNothing : *found;
}

bool RequestFields::is_list(const char* name) {
  return value(name).is_array();
}

std::optional<std::string> RequestFields::text(const char* name) {
  const Json& json = value(name);
  if (json.is_null()) return {};
  if (!json.is_string()) refuse_field(name, "needs a string");
  return json.get<std::string>();
}

std::string RequestFields::required_text(const char* name) {
  auto found = text(name);
  if (!found) refuse_field(name, "is missing");
  return std::move(*found);
}

std::optional<int64_t> RequestFields::integer(const char* name, int64_t least, int64_t most) {
  const Json& json = value(name);
  if (json.is_null()) return {};
  std::optional<int64_t> found;
  if (json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX)) {
    found = json.get<int64_t>();
  } else if (form_ && json.is_string()) {
    found = parsed<int64_t>(json.get<std::string>());
  }
  if (!found || *found < least || *found > most)
    refuse_field(name, fmt::format("needs a whole number from {} to {}", least, most));
  return found;
}

std::optional<double> RequestFields::number(const char* name, double least, double most) {
  const Json& json = value(name);
  if (json.is_null()) return {};
  std::optional<double> found;
  if (json.is_number()) {
    found = json.get<double>();
  } else if (form_ && json.is_string()) {
    found = parsed<double>(json.get<std::string>());
  }
  if (!found || !(*found >= least && *found <= most))
    refuse_field(name, fmt::format("needs a number from {} to {}", least, most));
  return found;
}

std::optional<bool> RequestFields::flag(const char* name) {
  const Json& json = value(name);
  if (json.is_null()) return {};
  if (json.is_boolean()) return json.get<bool>();
  if (form_ && (json == "true" || json == "false")) return json == "true";
  refuse_field(name, "needs true or false");
}

std::vector<std::string> RequestFields::texts(const char* name, int64_t most) {
  const Json& json = value(name);
  if (json.is_null()) return {};
  if (json.is_string()) return {json.get<std::string>()};
  if (!json.is_array()) refuse_field(name, "needs a string or a list of strings");
  if (json.size() > static_cast<size_t>(most))
    refuse_field(name, fmt::format("has {} texts, at most {} are accepted", json.size(), most));
  std::vector<std::string> found;
  for (const Json& one : json) {
    if (!one.is_string()) refuse_field(name, "needs a string or a list of strings");
    found.push_back(one.get<std::string>());
  }
  return found;
}

void RequestFields::refuse(const char* name, const Json& harmless) {
  const Json& json = value(name);
  if (!json.is_null() && json != harmless) refuse_field(name, "is not supported");
}

void RequestFields::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) known_.insert(name);
}

void RequestFields::finish() const {
  for (const auto& [name, ignored] : object_.items())
    if (!known_.contains(name))
      throw HttpError(400, cut_text(name, 200) + ": is not a field of this request", cut_text(name, 200),
                      "unknown_parameter");
}

}  // namespace attune::serve
