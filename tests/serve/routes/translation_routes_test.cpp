// What translation models answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "tests/serve/service_fixture.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TranslationRoutes, TranslationsAreThoseOfTheTranslator) {
  TestService t;
  const Translator translator = Translator::load(t.folder("en-de"));
  const std::vector<std::string> sentences = small_text(4);
  const auto expected = translator.translate(sentences);
  const Answer list = t.post("/translate", {{"q", sentences}, {"source", "en"}, {"target", "de"}});
  ASSERT_EQ(list.status, 200) << list.body;
  for (size_t i = 0; i < sentences.size(); ++i) EXPECT_EQ(list.json()["translatedText"][i], expected[i].text());
  const std::string text = " " + sentences[0] + "\n\n" + sentences[1] + "  ";
  const std::string whole = " " + expected[0].text() + "\n\n" + expected[1].text() + "  ";
  EXPECT_EQ(t.post("/translate", {{"q", text}, {"source", "en"}, {"target", "de"}}).json()["translatedText"], whole);
  const Answer html = t.post("/translate", {{"q", "<p>" + sentences[0] + "</p><br>"},
                                            {"source", "en"},
                                            {"target", "de"},
                                            {"format", "html"},
                                            {"alternatives", 1}});
  EXPECT_THAT(html.json()["translatedText"].get<std::string>(), HasSubstr("<p>"));
  EXPECT_EQ(html.json()["alternatives"].size(), 1u);
  const Answer form = t.ask(post_request("/translate", "q=" + std::string("dog") + "&source=en&target=de",
                                         "application/x-www-form-urlencoded"));
  EXPECT_EQ(form.json()["translatedText"], translator.translate("dog").text());
  EXPECT_EQ(t.post("/translate", {{"q", "x"}, {"source", "fr"}, {"target", "de"}}).status, 400);
  EXPECT_EQ(t.get("/languages").json()[0]["targets"], Json::array({"de"}));
}

// The parts are counted before sentences are split off or encoded.
TEST(TranslationRoutes, HtmlOfTooManyPartsIsRefused) {
  ServeConfig config;
  config.limits.texts = 100;
  TestService t(config);
  const auto translate = [&](int parts, const std::string& text) {
    std::string html;
    for (int i = 0; i < parts; ++i) html += "<b>" + text;
    // Of a language that no model has, so that nothing is translated.
    return t.post("/translate", {{"q", {html, html}}, {"source", "xx"}, {"target", "de"}, {"format", "html"}});
  };
  const Answer refused = translate(51, "a");
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.json()["error"], "q: has more than 100 sentences");
  EXPECT_EQ(translate(50, "a").status, 400);
  EXPECT_EQ(translate(1000, " &nbsp;").status, 400) << "white space is no sentence";
}

TEST(TranslationRoutes, OwnTranslationsHaveScoresAndConstraints) {
  TestService t;
  const std::vector<std::string> sentences = small_text(3);
  Json body = {{"model", "en-de"}, {"text", sentences}, {"n_best", 2}, {"beam_size", 3}, {"alignments", true}};
  const Answer answer = t.post("/v1/translate", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json translations = answer.json()["translations"];
  ASSERT_EQ(translations.size(), 3u);
  const Json& best = translations[0]["sentences"][0]["n_best"];
  ASSERT_EQ(best.size(), 2u);
  EXPECT_GE(best[0]["score"], best[1]["score"]);
  body["stream"] = true;
  const std::vector<std::string> events = t.post("/v1/translate", body).events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(Json::parse(events[0])["n_best"], best);
  const std::string word = sentences[1].substr(0, sentences[1].find(' '));
  const Answer prefix = t.post("/v1/translate", {{"text", sentences[0]}, {"prefix", word}});
  EXPECT_THAT(prefix.json()["translations"][0]["text"].get<std::string>(), StartsWith(word));
  EXPECT_EQ(t.post("/v1/translate", {{"text", "a"}, {"n_best", 1000}}).json()["error"]["param"], "n_best");
}

TEST(TranslationRoutes, AnyBeamMayBeAskedOfAModelThatSearchesInGroups) {
  TestService t({}, false);
  const std::filesystem::path file = t.folder("en-de") / "generation_config.json";
  Json generation = read_json_file(file);
  generation["beam_size"] = 4;
  generation["beam_groups"] = 4;
  write_json_file(file, generation);
  t.service->load();
  for (const int64_t beam : {1, 3, 4, 8}) {
    const Answer answer = t.post("/v1/translate", {{"text", "the old dog"}, {"beam_size", beam}});
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
}

}  // namespace
}  // namespace attune::serve
