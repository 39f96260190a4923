// In place of language_detector.cpp where CLD2 is not installed.

#include "attune/serve/http/http_error.h"
#include "attune/serve/language_detector.h"

namespace attune::serve {

std::vector<DetectedLanguage> detect_language(std::string_view, const std::vector<std::string>&) {
  throw HttpError(501, "this server was built without CLD2, which detects languages", "source");
}

}  // namespace attune::serve
