#include "attune/serve/language_detector.h"

#include <cld2/public/compact_lang_det.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

bool contains(const std::vector<std::string>& known, const std::string& code) {
  return std::find(known.begin(), known.end(), code) != known.end();
}

// CLD2 has old codes for some languages, and two for Chinese and Norwegian, which may be served as one.
std::string known_code(const std::string& code, const std::vector<std::string>& known) {
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"iw", "he"}, {"jw", "jv"}, {"no", "nb"}, {"zh-Hant", "zh"}};
  if (contains(known, code)) return code;
  for (const auto& [old, other] : kOthers)
    if (code == old && contains(known, other)) return other;
  return "";
}

}  // namespace

std::vector<DetectedLanguage> detect_language(std::string_view text, const std::vector<std::string>& known) {
  if (known.empty()) throw HttpError(400, "no model that is served says which languages it translates");
  CLD2::Language languages[3] = {};
  int percent[3] = {}, bytes = 0;
  bool reliable = false;
  CLD2::DetectLanguageSummary(text.data(), static_cast<int>(text.size()), true, languages, percent, &bytes, &reliable);
  std::vector<DetectedLanguage> found;
  for (int i = 0; i < 3; ++i) {
    const std::string code = known_code(CLD2::LanguageCode(languages[i]), known);
    if (percent[i] <= 0 || code.empty()) continue;
    const auto same = std::ranges::find(found, code, &DetectedLanguage::code);  // two scripts of Chinese
    if (same == found.end())
      found.push_back({code, static_cast<double>(percent[i])});
    else
      same->confidence += percent[i];
  }
  std::ranges::stable_sort(found, std::greater(), &DetectedLanguage::confidence);
  if (found.empty()) found.push_back({contains(known, "en") ? "en" : known.front(), 0});
  return found;
}

}  // namespace attune::serve
