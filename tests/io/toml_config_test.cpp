#include "attune/io/toml_config.h"
#include "attune/base/json_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& text) {
  const std::string message = message_of<FileError>([&] { parse_toml(text, "run.toml"); });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(Toml, BecomesJson) {
  const Json json = parse_toml(R"(
# a comment with "quotes and [brackets
[model]
d_model = 256
dropout = 0.25
final_norm = false
encoder_attention = {kind = "latent", latent_dim = 32}
[data]
train_source = ["a.en", 'b\.en']
marker = """a"b
"""
x.y = 1
)",
                               "run.toml");
  EXPECT_EQ(json.at("model"), Json({{"d_model", 256},
                                    {"dropout", 0.25},
                                    {"encoder_attention", {{"kind", "latent"}, {"latent_dim", 32}}},
                                    {"final_norm", false}}));
  EXPECT_EQ(json.at("data").at("train_source"), Json({"a.en", "b\\.en"}));
  EXPECT_EQ(json.at("data").at("marker"), "a\"b\n");
  EXPECT_EQ(json.at("data").at("x").at("y"), 1);
  EXPECT_TRUE(json.at("model").at("d_model").is_number_integer());
}

TEST(Toml, ErrorsNameFileLineAndColumn) {
  const TemporaryFolder folder;
  write_file(folder / "run.toml", "[model]\nd_model = = 3\n");
  EXPECT_THAT(message_of<FileError>([&] { read_toml(folder / "run.toml"); }),
              StartsWith((folder / "run.toml").string() + ":2:11: "));
  EXPECT_THAT(refusal("a = 1\na = 2\n"), StartsWith("run.toml:2:"));
  EXPECT_THAT(message_of<FileError>([&] { read_toml(folder / "none.toml"); }), HasSubstr("none.toml"));
}

TEST(Toml, RefusesWhatNoKeyTakes) {
  EXPECT_EQ(refusal("[a]\nb = 1979-05-27\n"),
            "run.toml: a.b: is a date or a time, which no key takes; a string needs quotes");
  EXPECT_THAT(refusal("b = 07:32:00\n"), HasSubstr("b: is a date or a time"));
  EXPECT_THAT(refusal("b = [1979-05-27T07:32:00Z]\n"), HasSubstr("b: is a date or a time"));
  EXPECT_THAT(refusal("b = inf\n"), HasSubstr("b: needs a finite number"));
  EXPECT_THAT(refusal("b = nan\n"), HasSubstr("b: needs a finite number"));
  EXPECT_THAT(refusal("b = \"\xFF\"\n"), StartsWith("run.toml:1:"));
}

TEST(Toml, RefusesWhatWouldExhaustMemoryOrStack) {
  const auto repeat = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  EXPECT_THAT(refusal(repeat("a.", 500'000) + "a = 1"), HasSubstr("more than 32 levels"));
  EXPECT_THAT(refusal(repeat("\"=\" . ", 150'000) + "a = 1"), HasSubstr("more than 32 levels"));
  EXPECT_THAT(refusal("[" + repeat("a.", 40) + "a]"), HasSubstr("more than 32 levels"));
  EXPECT_THAT(refusal("a = " + repeat("[", 500'000)), HasSubstr("more than 32 levels"));
  EXPECT_THAT(refusal("a = " + repeat("{a=", 300'000)), HasSubstr("more than 32 levels"));
  EXPECT_THAT(refusal("a = \"\"\"\"\"\"\"\"\n" + repeat("b.", 40) + "a = 1"), HasSubstr("run.toml"))
      << "quotes at an end";
  EXPECT_THAT(refusal("#" + std::string(1 << 20, ' ')), HasSubstr("at most 1048576 are accepted"));
  std::string many;
  for (int i = 0; i < 4097; ++i) many += fmt::format("k{} = 0\n", i);
  EXPECT_THAT(refusal(many), HasSubstr("4097 keys, at most 4096"));
  const Json fine =
      parse_toml("a = \"" + repeat("..", 100) + repeat("[", 100) + "\" # " + repeat("[.", 100), "run.toml");
  EXPECT_EQ(fine.at("a").get<std::string>().size(), 300u) << "strings and comments do not nest";
  EXPECT_EQ(parse_toml("a = " + repeat("[", 32) + repeat("]", 32), "run.toml").size(), 1u);
}

TEST(Toml, OverridesSetKeys) {
  Json json = {{"model", {{"d_model", 512}, {"attention", {{"kind", "multi_head"}}}}}};
  const char* assignments[] = {"model.d_model=256",
                               "model.attention=latent",
                               "train.dropout=0.5",
                               "data.files=[\"a\", 'b']",
                               "data.name=run=1",
                               "data.marker=@@",
                               "data.empty=",
                               "data.day=1979-05-27",
                               "data.quoted=\"7\"",
                               "data.trap=1\nother = 2",
                               "data.table={kind = \"x\"}",
                               "train.fast=true"};
  for (const char* assignment : assignments) apply_override(json, assignment);
  EXPECT_EQ(json, Json({{"model", {{"d_model", 256}, {"attention", "latent"}}},
                        {"train", {{"dropout", 0.5}, {"fast", true}}},
                        {"data",
                         {{"files", {"a", "b"}},
                          {"name", "run=1"},
                          {"marker", "@@"},
                          {"empty", ""},
                          {"day", "1979-05-27"},
                          {"quoted", "7"},
                          {"trap", "1\nother = 2"},
                          {"table", {{"kind", "x"}}}}}}));
}

TEST(Toml, OverridesNameTheAssignment) {
  Json json = {{"model", {{"d_model", 512}}}};
  const auto wrong = [&](const std::string& assignment) {
    const std::string message = message_of<ConfigError>([&] { apply_override(json, assignment); });
    EXPECT_THAT(message, HasSubstr("--set"));
    return message;
  };
  EXPECT_EQ(wrong("model.d_model"), "--set model.d_model: needs key=value");
  EXPECT_EQ(wrong("model.d_model.x=3"), "--set model.d_model.x=3: model.d_model is no table but 512");
  EXPECT_THAT(wrong("=3"), HasSubstr("a part of the key is empty"));
  EXPECT_THAT(wrong("model..x=3"), HasSubstr("a part of the key is empty"));
  EXPECT_THAT(wrong("mo del=3"), HasSubstr("letters, digits"));
  EXPECT_THAT(wrong("a=\xFF"), HasSubstr("not valid UTF-8"));
  std::string deep = "a";
  for (int i = 0; i < 1000; ++i) deep += ".a";
  EXPECT_THAT(wrong(deep + "=1"), HasSubstr("more than 32 parts"));
  EXPECT_EQ(json.at("model").at("d_model"), 512);
}

TEST(Toml, WhatIsWrittenIsRead) {
  const Json json = {
      {"a", {{"text", "tab\t \"q\" \\ \x7f \xC3\xA9\n"}, {"small", 1e-9}, {"one", 1.0}, {"n", -3}}},
      {"b", {{"list", {"x", "y"}}, {"none", Json::array()}, {"inner", {{"k", true}, {"l", {{"m", 0}}}}}}}};
  const Json back = parse_toml(write_toml(json), "written");  // in the order of the keys' names
  EXPECT_EQ(nlohmann::json(back), nlohmann::json(json));
  EXPECT_THROW(write_toml_value(Json()), ConfigError);
}

}  // namespace
}  // namespace attune
