// Forms: the text of a query, and multipart with the boundary "b".

#include "attune/serve/http/form.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const std::string_view text = fuzz::text_of(data, size);
  const auto check = [&](const serve::FormFields& fields) {
    size_t bytes = 0;
    for (const auto& [name, value] : fields) bytes += name.size() + value.size();
    fuzz::require(fields.size() <= serve::kMostFormFields && bytes <= text.size());
  };
  fuzz::answer([&] { check(serve::parse_urlencoded_form(text)); });
  fuzz::answer([&] { check(serve::parse_multipart_form(text, "multipart/form-data; boundary=b")); });
  // The header of a request is the client's too.
  const auto [content_type, body] = fuzz::split<2>(text);
  return fuzz::answer(
      [&, &content_type = content_type, &body = body] { check(serve::parse_multipart_form(body, content_type)); });
}
