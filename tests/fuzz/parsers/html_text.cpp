// HTML and its text. What is put together again has the same parts.

#include "attune/serve/html_text.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto whole = [](const std::vector<serve::HtmlPart>& parts) {
    std::string text;
    for (const serve::HtmlPart& part : parts) text += (part.is_text ? "t:" : "k:") + part.content;
    return text;
  };
  const auto parts = serve::split_html(fuzz::text_of(data, size));
  fuzz::require(whole(serve::split_html(serve::join_html(parts))) == whole(parts));
  return 0;
}
