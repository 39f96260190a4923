#include "attune/serve/http/form.h"

#include <gtest/gtest.h>

#include "attune/base/random.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

TEST(Form, UrlencodedFieldsAreDecoded) {
  const FormFields fields = parse_urlencoded_form("q=Hello+there%21&source=en&empty=&flag");
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].second, "Hello there!");
  EXPECT_EQ(fields[1].first, "source");
  EXPECT_EQ(fields[2].second, "");
  EXPECT_EQ(fields[3].first, "flag");
  EXPECT_EQ(percent_decoded("%C3%a9"), "\xC3\xA9");
  EXPECT_EQ(percent_decoded("a+b"), "a+b") << "in a path";
  EXPECT_THROW(percent_decoded("100%"), HttpError);
  EXPECT_THROW(percent_decoded("%4"), HttpError);
  EXPECT_THROW(percent_decoded("%zz"), HttpError);
}

constexpr const char* kType = "multipart/form-data; boundary=\"b1\"";

TEST(Form, MultipartFieldsKeepTheirBytes) {
  const std::string body =
      "--b1\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nHello\r\nthere\r\n"
      "--b1\r\ncontent-disposition: form-data; filename=\"x; name=no\"; name=\"file\"\r\nContent-Type: "
      "text/plain\r\n\r\n"
      "\r\n--b1--\r\n";
  const FormFields fields = parse_multipart_form(body, kType);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0], (std::pair<std::string, std::string>("q", "Hello\r\nthere")));
  EXPECT_EQ(fields[1].first, "file");
  EXPECT_EQ(fields[1].second, "");
}

TEST(Form, WhatIsNoFormIsRefused) {
  for (const char* body : {"", "--b2\r\n", "--b1", "--b1\r\n", "--b1\r\n\r\nx\r\n--b1--",
                           "--b1\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nno end"})
    EXPECT_THROW(parse_multipart_form(body, kType), HttpError) << body;
  EXPECT_THROW(parse_multipart_form("--\r\n", "multipart/form-data"), HttpError);
  std::string many;
  for (size_t i = 0; i <= kMostFormFields; ++i) many += "a=1&";
  EXPECT_THROW(parse_urlencoded_form(many), HttpError);
}

TEST(Form, AnyBytesGiveFieldsOrAnError) {
  Random random(5);
  const std::string pieces[] = {"--b1", "\r\n", "--", "name=\"q\"", "Content-Disposition: form-data; ",
                                "x",    "%",    "=",  "&"};
  for (int i = 0; i < 20000; ++i) {
    std::string body = "--b1";
    for (uint64_t n = random.below(12); n > 0; --n) body += pieces[random.below(std::size(pieces))];
    try {
      parse_multipart_form(body, kType);
    } catch (const HttpError&) {
    }
    try {
      parse_urlencoded_form(body);
    } catch (const HttpError&) {
    }
  }
}

}  // namespace
}  // namespace attune::serve
