#include "attune/serve/routes/request_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/serve/http/http_error.h"
#include "tests/support/errors.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

RequestFields fields_of(const std::string& body, const std::string& type = "application/json") {
  return RequestFields({.method = "POST", .path = "/", .headers = {{"content-type", type}}, .body = body});
}

template <class F>
std::string field_of(F&& f) {
  try {
    f();
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.field();
  }
  return "no error";
}

TEST(RequestFields, ReadsWhatIsThere) {
  RequestFields fields = fields_of(R"({"s": "x", "i": 3, "d": 0.5, "b": true, "l": ["a", "b"], "n": null})");
  EXPECT_EQ(fields.text("s"), "x");
  EXPECT_EQ(fields.integer("i", 0, 3), 3);
  EXPECT_EQ(fields.number("d", 0, 1), 0.5);
  EXPECT_EQ(fields.flag("b"), true);
  EXPECT_EQ(fields.texts("l", 2), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.texts("s", 2), (std::vector<std::string>{"x"}));
  EXPECT_FALSE(fields.text("n"));
  EXPECT_FALSE(fields.integer("absent", 0, 1));
  fields.finish();
}

TEST(RequestFields, AFormHasTheSameFieldsAsText) {
  RequestFields fields = fields_of("i=3&d=0.5&b=false&l=a&l=b&s=5", "application/x-www-form-urlencoded; charset=utf-8");
  EXPECT_EQ(fields.integer("i", 0, 3), 3);
  EXPECT_EQ(fields.number("d", 0, 1), 0.5);
  EXPECT_EQ(fields.flag("b"), false);
  EXPECT_EQ(fields.texts("l", 2), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.text("s"), "5");
  fields.finish();
  EXPECT_THROW(fields_of("q=%ff", "application/x-www-form-urlencoded"), HttpError);
}

TEST(RequestFields, ABodyThatIsElsewhereOrOfAnotherKindIsExplained) {
  const auto refusal = [](const HttpRequest& request) -> std::pair<int, std::string> {
    try {
      RequestFields fields(request);
    } catch (const HttpError& error) {
      return {error.status(), error.what()};
    }
    return {200, ""};
  };
  for (const char* json : {R"({"q": "a"})", "\n [1]"}) {
    HttpRequest request{.method = "POST", .path = "/", .body = json};
    request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
    EXPECT_EQ(refusal(request).first, 415) << json;
    EXPECT_THAT(refusal(request).second, HasSubstr("needs application/json")) << json;
  }
  EXPECT_EQ(fields_of("q={a}", "application/x-www-form-urlencoded").text("q"), "{a}");
  const auto with_query = refusal({.method = "POST", .path = "/", .query = "q=a"});
  EXPECT_EQ(with_query.first, 400);
  EXPECT_THAT(with_query.second, HasSubstr("behind the ? of the address"));
  EXPECT_THAT(refusal({.method = "POST", .path = "/"}).second, HasSubstr("is empty, needs a JSON object"));
}

TEST(RequestFields, WhatIsWrongIsNamed) {
  const std::string body = R"({"f": 1.5, "t": [1], "big": 99999999999999999999, "e": 1e999})";
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": "x"})").integer("f", 0, 9); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": 1.5})").integer("f", 0, 9); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": 10})").integer("f", 0, 9); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": 18446744073709551615})").integer("f", 0, INT64_MAX); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": -0.1})").number("f", 0, 1); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": "true"})").flag("f"); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": [1]})").texts("f", 3); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": ["a", "b"]})").texts("f", 1); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": []})").refuse("f"); }), "f");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": 0.0})").refuse("f", 0); }), "no error");
  EXPECT_EQ(field_of([&] { fields_of(R"({"f": 1})").finish(); }), "f");
  EXPECT_EQ(field_of([&] { fields_of("{}").required_text("f"); }), "f");
  EXPECT_THROW(fields_of(body), HttpError);  // 1e999 is no number
  EXPECT_THROW(fields_of("{\"a\": \"\xff\"}"), HttpError);
  EXPECT_THROW(fields_of(R"({"a": 1, "a": 2})"), HttpError);
  EXPECT_THROW(fields_of(std::string(100000, '[')), HttpError);
  EXPECT_THROW(fields_of(""), HttpError);
}

}  // namespace
}  // namespace attune::serve
