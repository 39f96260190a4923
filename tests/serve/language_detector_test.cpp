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
  ServeConfig config;
  TestService both(config, false);
  config.models["de-en"].folder = both.folder("en-de").string();
  TestService t(config);
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
