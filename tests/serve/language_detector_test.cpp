// With CLD2 and without: ATTUNE_DETECTS_LANGUAGES says which of both this build is.

#include "attune/serve/language_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/serve/http/http_error.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/errors.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGerman = "Der alte Hund schläft im Garten, und die Katze sitzt auf der Mauer.";

// With a second translation model, whose name says its languages.
struct ServiceOfTwo {
  TemporaryFolder folder;
  TestService service;

  explicit ServiceOfTwo(const std::string& name) : service(config_with(name)) {}
  ServeConfig config_with(const std::string& name) const {
    write_small_model(folder / name);
    ServeConfig config;
    config.models[name].folder = (folder / name).string();
    return config;
  }
};

TEST(LanguageDetector, FindsALanguageOrSaysWhatIsMissing) {
  if (ATTUNE_DETECTS_LANGUAGES) {
    const std::vector<DetectedLanguage> found = detect_language(kGerman, {"en", "de"});
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().code, "de");
    EXPECT_GT(found.front().confidence, 50);
    EXPECT_EQ(detect_language("?", {"en", "de"}).front().confidence, 0);
    EXPECT_THROW(detect_language(kGerman, {}), HttpError);
  } else {
    EXPECT_THAT(message_of<HttpError>([] { detect_language(kGerman, {"en", "de"}); }), HasSubstr("CLD2"));
  }
}

// CLD2's own are "iw", "no" and "zh-Hant".
TEST(LanguageDetector, LanguagesHaveTheCodesThatAreServed) {
  if (!ATTUNE_DETECTS_LANGUAGES) GTEST_SKIP();
  const auto code = [](const char* text, const char* known) {
    return detect_language(text, {"en", known}).front().code;
  };
  const char* hebrew = "הכלב הזקן ישן בגינה, והחתול יושב על החומה ומסתכל על הציפורים.";
  const char* norwegian = "Jeg vet ikke hva vi skal gjøre i dag, men kanskje vi kan gå en tur i skogen etter frokost.";
  const char* traditional = "這隻老狗睡在花園裡，貓坐在牆上看著鳥兒，今天的天氣真的很好。";
  EXPECT_EQ(code(hebrew, "he"), "he");
  EXPECT_EQ(code(norwegian, "nb"), "nb");
  EXPECT_EQ(code(norwegian, "no"), "no");
  EXPECT_EQ(code(traditional, "zh"), "zh");
  EXPECT_EQ(code(traditional, "zh-Hant"), "zh-Hant");
  const std::string both = std::string("这只老狗睡在花园里，猫坐在墙上看着鸟儿，今天的天气真的很好。") + traditional;
  EXPECT_EQ(detect_language(both, {"en", "zh"}).size(), 1) << "one language in two scripts";
}

TEST(LanguageDetector, RoutesNeedIt) {
  TestService t;
  const int status = ATTUNE_DETECTS_LANGUAGES ? 200 : 501;
  EXPECT_EQ(t.post("/detect", {{"q", kGerman}}).status, status);
  EXPECT_EQ(
      t.post("/translate", {{"q", "The old dog sleeps in the garden."}, {"source", "auto"}, {"target", "de"}}).status,
      status);
  EXPECT_EQ(t.post("/translate", {{"q", "dog"}, {"source", "en"}, {"target", "de"}}).status, 200);
}

// As LibreTranslate: English where it is one of them, and only languages that are translated into the target.
TEST(LanguageDetector, WhatIsNotFoundIsEnglish) {
  if (!ATTUNE_DETECTS_LANGUAGES) GTEST_SKIP();
  ServiceOfTwo both("de-en");
  TestService& t = both.service;
  EXPECT_EQ(detect_language("Hello", {"de", "en"}).front().code, "en");
  EXPECT_EQ(detect_language("?", {"de", "fr"}).front().code, "de");
  for (const char* text : {"Hello", "A man rides.", "?", "Привет, как дела? Сегодня хорошая погода."}) {
    const Json found = t.post("/detect", {{"q", text}}).json();
    EXPECT_EQ(found[0]["language"], "en") << text;
    for (const char* target : {"de", "en"}) {
      const Answer answer = t.post("/translate", {{"q", text}, {"source", "auto"}, {"target", target}});
      ASSERT_EQ(answer.status, 200) << answer.body;
      EXPECT_NE(answer.json()["detectedLanguage"]["language"], target) << text;
    }
  }
  const Answer unknown = t.post("/translate", {{"q", "Hello"}, {"source", "auto"}, {"target", "fr"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("target: fr"));
}

TEST(LanguageDetector, MarkupIsNotRead) {
  if (!ATTUNE_DETECTS_LANGUAGES) GTEST_SKIP();
  ServiceOfTwo both("fr-de");
  TestService& t = both.service;
  const char* html =
      "<p title=\"The old dog sleeps in the garden, and the cat sits on the wall and watches the birds\">"
      "<!-- This is what the people of the house have written about their animals. -->"
      "Le vieux chien dort dans le jardin, et le chat est assis sur le mur.</p>";
  const Answer answer = t.post("/translate", {{"q", html}, {"source", "auto"}, {"target", "de"}, {"format", "html"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["detectedLanguage"]["language"], "fr");
}

TEST(LanguageDetector, TargetsAreKnownToo) {
  if (!ATTUNE_DETECTS_LANGUAGES) GTEST_SKIP();
  TestService t;
  EXPECT_EQ(t.post("/detect", {{"q", kGerman}}).json()[0]["language"], "de");
}

TEST(LanguageDetector, BytesThatAreNoTextAreRefused) {
  TestService t;
  for (const char* path : {"/detect", "/translate"}) {
    const Answer answer =
        t.ask(post_request(path, "q=a%FFb&source=auto&target=de", "application/x-www-form-urlencoded"));
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_THAT(answer.body, HasSubstr("UTF-8")) << path;
  }
}

TEST(LanguageDetector, LanguagesHaveNames) {
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("qqq"), "qqq");
}

}  // namespace
}  // namespace attune::serve
