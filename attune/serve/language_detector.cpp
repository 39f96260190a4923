#include "attune/serve/language_detector.h"

#include <cld2/public/compact_lang_det.h>

#include <algorithm>

#include "attune/serve/http/http_error.h"

namespace attune::serve {

std::vector<DetectedLanguage> detect_language(std::string_view text, const std::vector<std::string>& known) {
  if (known.empty()) throw HttpError(400, "no model has languages");
  CLD2::Language languages[3] = {};
  int percent[3] = {}, bytes = 0;
  bool reliable = false;
  CLD2::DetectLanguageSummary(text.data(), static_cast<int>(text.size()), true, languages, percent, &bytes, &reliable);
  std::vector<DetectedLanguage> found;
  for (int i = 0; i < 3; ++i) {
    const std::string code = CLD2::LanguageCode(languages[i]);
    if (percent[i] > 0 && std::find(known.begin(), known.end(), code) != known.end())
      found.push_back({code, static_cast<double>(percent[i])});
  }
  if (found.empty()) {
    const bool english = std::find(known.begin(), known.end(), "en") != known.end();
    found.push_back({english ? "en" : known.front(), 0});
  }
  return found;
}

}  // namespace attune::serve
