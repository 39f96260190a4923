#pragma once
// Which language a text is in.

#include <string>
#include <string_view>
#include <vector>

namespace attune::serve {

struct DetectedLanguage {
  std::string code;       // ISO 639-1 where there is one: "de"
  double confidence = 0;  // 0 to 100
};

/// Returns the languages of a text that are among `known`, surest first, as CLD2 finds them. If it finds none of them,
/// returns one with confidence 0, as LibreTranslate does: "en" if it is known, else the first of `known`. `text` has to
/// be valid UTF-8. Throws HttpError: 400 if `known` is empty, 501 if Attune was built without CLD2.
std::vector<DetectedLanguage> detect_language(std::string_view text, const std::vector<std::string>& known);

/// "German" for "de"; the code itself where no name is known.
std::string language_name(const std::string& code);

}  // namespace attune::serve
