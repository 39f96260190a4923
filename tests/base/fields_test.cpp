#include "attune/base/fields.h"
#include "attune/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"

namespace attune {
enum class Colour { red, green };
template <>
struct EnumNames<Colour> {
  static constexpr std::pair<Colour, const char*> values[] = {{Colour::red, "red"}, {Colour::green, "green"}};
};

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Inner {
  double rate = 0.5;
  Colour colour = Colour::red;
  bool operator==(const Inner&) const = default;
};
struct Outer {
  bool flag = false;
  int64_t count = 3;
  uint64_t seed = 4;
  std::string name = "x";
  std::vector<std::string> files = {};
  std::vector<double> numbers = {};
  std::vector<std::vector<int64_t>> lists = {};
  Inner inner = {};
  bool operator==(const Outer&) const = default;
};
template <class Visitor>
void visit_fields(Inner& c, Visitor& v) {
  v("rate", c.rate);
  v("colour", c.colour);
}
template <class Visitor>
void visit_fields(Outer& c, Visitor& v) {
  v("flag", c.flag);
  v("count", c.count);
  v("seed", c.seed);
  v("name", c.name);
  v("files", c.files);
  v("numbers", c.numbers);
  v("lists", c.lists);
  v("inner", c.inner);
}

Outer read(const Json& json) {
  Outer outer;
  read_fields(json, outer, "x.json");
  return outer;
}

std::string refusal(const Json& json) {
  return message_of<ConfigError>([&] { read(json); });
}

TEST(Fields, WhatIsWrittenIsRead) {
  const Outer outer{.flag = true,
                    .count = std::numeric_limits<int64_t>::min(),
                    .seed = std::numeric_limits<uint64_t>::max(),
                    .name = "\"\n\xC3\xA9",
                    .files = {"a", ""},
                    .inner = {.rate = 0.1, .colour = Colour::green}};
  const Json json = write_fields(outer);
  EXPECT_EQ(read(json), outer);
  EXPECT_EQ(read(Json::parse(json.dump())), outer) << "also through text";
  EXPECT_EQ(json.at("inner").at("colour"), "green");
  EXPECT_EQ(json.begin().key(), "flag") << "in the order of the fields";
}

TEST(Fields, WhatIsNotThereStaysAsItWas) {
  Outer outer{.count = 9, .inner = {.rate = 0.25}};
  read_fields(Json{{"name", "y"}, {"inner", {{"colour", "green"}}}}, outer, "x.json");
  EXPECT_EQ(outer, (Outer{.count = 9, .name = "y", .inner = {.rate = 0.25, .colour = Colour::green}}));
}

TEST(Fields, AFileIsToldFromItsFields) {
  Inner inner;
  const Json json = {{"colour", "blue"}};
  EXPECT_EQ(message_of<ConfigError>([&] { FieldReader(json, "x.toml", ": ")("colour", inner.colour); }),
            "x.toml: colour: is \"blue\", needs one of red, green");
}

TEST(Fields, UnknownKeysAreRefused) {
  EXPECT_EQ(refusal({{"cuont", 3}}), "x.json: unknown key \"cuont\", did you mean \"count\"?");
  EXPECT_EQ(refusal({{"inner", {{"color", "red"}}}}), "x.json.inner: unknown key \"color\", did you mean \"colour\"?");
  EXPECT_EQ(refusal({{"something_else_entirely", 3}}), "x.json: unknown key \"something_else_entirely\"");
}

TEST(Fields, TypesAreChecked) {
  EXPECT_EQ(refusal(Json::array()), "x.json: needs a table of keys, found array");
  EXPECT_EQ(refusal({{"flag", 1}}), "x.json.flag: is 1, needs true or false");
  EXPECT_EQ(refusal({{"count", 1.5}}), "x.json.count: is 1.5, needs a whole number");
  EXPECT_EQ(refusal({{"count", "3"}}), "x.json.count: is \"3\", needs a whole number");
  EXPECT_EQ(refusal({{"count", true}}), "x.json.count: is true, needs a whole number");
  EXPECT_EQ(refusal({{"count", uint64_t{1} << 63}}),
            "x.json.count: is 9223372036854775808, needs a whole number below 2^63");
  EXPECT_EQ(refusal({{"seed", -1}}), "x.json.seed: is -1, needs a whole number that is not negative");
  EXPECT_EQ(refusal({{"name", 3}}), "x.json.name: is 3, needs a string");
  EXPECT_EQ(refusal({{"files", {"a", 3}}}), "x.json.files: is 3, needs strings only");
  EXPECT_EQ(refusal({{"files", {{"a", "b"}, {"c", "d"}}}}),
            "x.json.files: is {\"a\":\"b\",\"c\":\"d\"}, needs a string or a list of strings");
  EXPECT_EQ(read({{"numbers", {1, 0.5}}}).numbers, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(refusal({{"numbers", 3}}), "x.json.numbers: is 3, needs a list of numbers");
  EXPECT_EQ(refusal({{"numbers", {1, "x"}}}), "x.json.numbers: is \"x\", needs a number");
  EXPECT_EQ(read({{"lists", Json::parse("[[1, 2], [], [3]]")}}).lists,
            (std::vector<std::vector<int64_t>>{{1, 2}, {}, {3}}));
  EXPECT_EQ(refusal({{"lists", 3}}), "x.json.lists: is 3, needs a list of lists of whole numbers");
  EXPECT_EQ(refusal({{"lists", Json::parse("[[1], 2]")}}), "x.json.lists: is 2, needs a list of whole numbers");
  EXPECT_EQ(refusal({{"inner", 3}}), "x.json.inner: needs a table of keys, found number");
  EXPECT_EQ(refusal({{"inner", {{"rate", nullptr}}}}), "x.json.inner.rate: is null, needs a number");
  EXPECT_THAT(refusal({{"inner", {{"rate", std::numeric_limits<double>::infinity()}}}}), HasSubstr("needs a number"));
  EXPECT_EQ(refusal({{"inner", {{"colour", "blue"}}}}), "x.json.inner.colour: is \"blue\", needs one of red, green");
  EXPECT_EQ(refusal({{"inner", {{"colour", 0}}}}), "x.json.inner.colour: is 0, needs one of red, green");
}

TEST(Fields, LongValuesAreCutInErrors) {
  EXPECT_LT(refusal({{"count", std::string(100'000, 'x')}}).size(), 200u);
  EXPECT_THAT(refusal({{"count", "\xFF"}}), HasSubstr("needs a whole number")) << "not UTF-8, which JSON cannot show";
  EXPECT_THAT(refusal({{"inner", {{"colour", "\xFF"}}}}), HasSubstr("needs one of red, green"));
  EXPECT_LT(refusal({{"inner", {{"colour", std::string(100'000, 'x')}}}}).size(), 200u);
  EXPECT_THAT(refusal({{"count", std::string(78, 'x') + "ä"}}), HasSubstr("xx, needs")) << "no half of a character";
  EXPECT_EQ(show(Json{{"a", "\xFFz"}}), "{\"a\":\"\xEF\xBF\xBDz\"}");
}

// As Python's splitlines() and other readers of JSON lines tell them.
TEST(Fields, NothingInAStringEndsALine) {
  const std::string text =
      "a\xC2\x85\xE2\x80\xA8\xE2\x80\xA9z \xC2\xA0\xC3\xA9\xE2\x80\xA7\xE2\x82\xAC\xE2\x80\xAE \r\n\v\f\x1C";
  const std::string shown = show(Json{{text, text}});
  EXPECT_EQ(Json::parse(shown), (Json{{text, text}}));
  const std::string once = R"(a\u0085\u2028\u2029z )"
                           "\xC2\xA0\xC3\xA9\xE2\x80\xA7\xE2\x82\xAC\xE2\x80\xAE"
                           R"( \r\n\u000b\f\u001c)";
  EXPECT_EQ(shown, "{\"" + once + "\":\"" + once + "\"}");
  EXPECT_EQ(show(Json("\xE2\x80\xA8")), R"("\u2028")");
  EXPECT_EQ(show(Json("\xC3\xA9")), "\"\xC3\xA9\"");
  EXPECT_EQ(show_indented(Json{{text, text}}), "{\n  \"" + once + "\": \"" + once + "\"\n}");
}

TEST(Fields, ConversionsThatLoseNothingAreMade) {
  EXPECT_EQ(read({{"inner", {{"rate", 1}}}}).inner.rate, 1.0);
  EXPECT_THAT(read({{"files", "one"}}).files, ElementsAre("one"));
  EXPECT_EQ(read({{"count", uint64_t{7}}}).count, 7);
}

TEST(NearestName, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string> names = {"d_model", "d_ff", "heads", "layers"};
  EXPECT_EQ(nearest_name("d_modle", names), "d_model");
  EXPECT_EQ(nearest_name("layer", names), "layers");
  EXPECT_EQ(nearest_name("headss", names), "heads");
  EXPECT_EQ(nearest_name("vocabulary", names), "");
  EXPECT_EQ(nearest_name("window", {"kind"}), "") << "half of it differs";
  EXPECT_EQ(nearest_name("lr", {"d_ff", "is"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), names), "");
}

TEST(NearestName, IsElseTheFirstThatBeginsWithTheWord) {
  const std::vector<std::string> names = {"length_penalty", "beam_size", "beam_groups"};
  EXPECT_EQ(nearest_name("beam", names), "beam_size");
  EXPECT_EQ(nearest_name("be", names), "") << "too short to mean one";
  EXPECT_EQ(nearest_name("penalty", names), "");
}

}  // namespace
}  // namespace attune
