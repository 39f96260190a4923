#include <unicode/locid.h>

#include "attune/serve/language_detector.h"

namespace attune::serve {

std::string language_name(const std::string& code) {
  icu::UnicodeString name;
  icu::Locale(code.c_str()).getDisplayLanguage(icu::Locale::getEnglish(), name);
  std::string text;
  name.toUTF8String(text);
  return text.empty() ? code : text;
}

}  // namespace attune::serve
