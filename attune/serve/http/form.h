#pragma once
// Forms as browsers send them. The text may be hostile: nothing is copied more than once, and counts are limited.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::serve {

using FormFields = std::vector<std::pair<std::string, std::string>>;

/// The most fields of a form.
inline constexpr size_t kMostFormFields = 1024;

/// Decodes "%C3%A9" to two bytes, an e with an acute accent in UTF-8. Throws HttpError (400) for a '%' that two
/// hexadecimal digits do not follow.
std::string percent_decoded(std::string_view text);

/// "q=Hello+there&source=en", where '+' is a space: also a query. Throws HttpError (400).
FormFields parse_urlencoded_form(std::string_view text);

/// multipart/form-data (RFC 7578): the fields with their names, files as their content. `content_type` is the header
/// with the boundary. Throws HttpError (400).
FormFields parse_multipart_form(std::string_view body, std::string_view content_type);

}  // namespace attune::serve
