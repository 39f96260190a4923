// The body of a request, as JSON or as a form (the first byte), whose fields are asked for in every way.

#include "attune/serve/routes/request_fields.h"
#include "attune/text/text_file.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  if (size == 0) return 0;
  const char* types[] = {"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"};
  const serve::HttpRequest request = {.headers = {{"content-type", types[data[0] % 3]}},
                                      .body = std::string(fuzz::text_of(data + 1, size - 1))};
  return fuzz::answer([&] {
    serve::RequestFields fields(request);
    fuzz::answer([&] { fuzz::require(valid_utf8(fields.required_text("q"))); });
    fuzz::answer([&] { fuzz::require(fields.texts("q", 4).size() <= 4); });
    fuzz::answer([&] {
      const int64_t n = fields.integer("n", 1, 16).value_or(1);
      fuzz::require(n >= 1 && n <= 16);
    });
    fuzz::answer([&] {
      const double p = fields.number("p", 0, 1).value_or(0);
      fuzz::require(p >= 0 && p <= 1);
    });
    fuzz::answer([&] { fields.flag("b"); });
    fuzz::answer([&] { fields.refuse("r", 0); });
    fields.finish();
  });
}
