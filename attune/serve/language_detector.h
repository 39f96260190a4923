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

/// The languages of a text that are among `known`, surest first; where none of them is found, "en" if it is known, else
/// the first of `known`, with confidence 0, as LibreTranslate does. By CLD2. Throws HttpError (400) when there are no
/// known ones, and (501) when Attune was built without CLD2.
std::vector<DetectedLanguage> detect_language(std::string_view text, const std::vector<std::string>& known);

/// "German" for "de"; the code itself where no name is known.
std::string language_name(const std::string& code);

}  // namespace attune::serve
