#include "attune/serve/http/form.h"

#include <algorithm>

#include "attune/base/ascii.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text.substr(0, lower_case.size()), lower_case, {}, ascii_lower);
}

void add(FormFields& fields, std::string name, std::string value) {
  if (fields.size() == kMostFormFields)
    throw HttpError(400, "the form has more than " + std::to_string(kMostFormFields) + " fields");
  fields.emplace_back(std::move(name), std::move(value));
}

// The value of `name` among the parameters of a header: form-data; name="q". "" where there is none.
std::string header_parameter(std::string_view header, std::string_view name) {
  for (size_t at = header.find(';'); at != std::string_view::npos; at = header.find(';')) {
    header.remove_prefix(at + 1);
    while (header.starts_with(' ')) header.remove_prefix(1);
    const size_t equals = header.find_first_of("=;");
    if (equals == std::string_view::npos) return "";
    if (header[equals] == ';') continue;
    const bool wanted = equals == name.size() && starts_with_ignoring_case(header, name);
    header.remove_prefix(equals + 1);
    const bool quoted = header.starts_with('"');
    if (quoted) header.remove_prefix(1);
    const size_t end = quoted ? header.find('"') : header.find_first_of("; ");
    if (wanted) return std::string(header.substr(0, end));
    if (end == std::string_view::npos) return "";
    header.remove_prefix(end);
  }
  return "";
}

// The name of a part from the lines of its header.
std::string part_name(std::string_view header) {
  constexpr std::string_view kDisposition = "content-disposition:";
  while (!header.empty()) {
    const size_t end = header.find("\r\n");
    const std::string_view line = header.substr(0, end);
    if (starts_with_ignoring_case(line, kDisposition)) return header_parameter(line, "name");
    header.remove_prefix(end == std::string_view::npos ? header.size() : end + 2);
  }
  return "";
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) throw HttpError(400, "a % is not followed by two hexadecimal digits");
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

FormFields parse_urlencoded_form(std::string_view text) {
  const auto decoded = [](std::string_view part) {
    std::string spaced(part);
    std::ranges::replace(spaced, '+', ' ');
    return percent_decoded(spaced);
  };
  FormFields fields;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    const size_t equals = pair.find('=');
    if (!pair.empty())
      add(fields, decoded(pair.substr(0, equals)),
          equals == std::string_view::npos ? "" : decoded(pair.substr(equals + 1)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return fields;
}

FormFields parse_multipart_form(std::string_view body, std::string_view content_type) {
  constexpr size_t kLongestBoundary = 70;  // RFC 2046, section 5.1.1
  const std::string boundary = header_parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > kLongestBoundary)
    throw HttpError(400, "multipart/form-data needs a boundary of 1 to 70 characters");
  const std::string first = "--" + boundary, next = "\r\n--" + boundary;
  FormFields fields;
  if (!body.starts_with(first)) throw HttpError(400, "the form does not begin with its boundary");
  body.remove_prefix(first.size());
  while (!body.starts_with("--")) {
    if (!body.starts_with("\r\n")) throw HttpError(400, "the form has a boundary without a line end");
    // From the line end of the boundary on: the empty line is found in a part without header lines too.
    const size_t header_end = body.find("\r\n\r\n");
    const size_t end = header_end == std::string_view::npos ? header_end : body.find(next, header_end + 2);
    if (end == std::string_view::npos) throw HttpError(400, "the form ends within a part");
    const std::string name = part_name(body.substr(2, header_end - std::min<size_t>(header_end, 2)));
    if (name.empty()) throw HttpError(400, "the form has a part without a name");
    const size_t content = header_end + 4;
    add(fields, name, std::string(content <= end ? body.substr(content, end - content) : std::string_view{}));
    body.remove_prefix(end + next.size());
  }
  return fields;
}

}  // namespace attune::serve
