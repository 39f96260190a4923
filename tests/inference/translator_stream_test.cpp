// translate() of streams: sentences that come while others are translated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "attune/base/fail.h"
#include "attune/inference/decoding/scheduler.h"
#include "tests/inference/translator_fixture.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class TranslatorStreamTest : public TranslatorFixture {
 protected:
  // In its cache, the beam has no room for a source of more than four tokens.
  Translator make_tight() const {
    const int64_t most_tokens = 1 + generation_.beam_size * generation_.max_length;
    return Translator(model_, source_, target_, generation_,
                      {.cache_bytes = translator_.scheduler().model().cache_bytes(most_tokens, 5)});
  }
};

// Pieces of any size; where it need not wait, the reader now and then has nothing at hand.
TEST_F(TranslatorStreamTest, AStreamIsTranslatedInItsOrder) {
  const std::vector<std::string> lines = sentences(150);
  const auto together = translate(lines);
  for (const size_t most : {size_t{1}, size_t{9}, size_t{60}, size_t{150}}) {
    Random random(most);
    size_t read = 0;
    std::vector<Translation> written;
    translator_.translate({.read =
                               [&](bool wait) {
                                 std::vector<StreamedSentence> piece;
                                 if (!wait && random.below(3) == 0) return piece;
                                 const size_t size = 1 + random.below(most);
                                 while (piece.size() < size && read < lines.size())
                                   piece.push_back({.text = lines[read++]});
                                 return piece;
                               },
                           .write =
                               [&](std::vector<Translation> translations) {
                                 for (Translation& t : translations) written.push_back(std::move(t));
                                 EXPECT_LE(written.size(), read);
                               }},
                          {.batch_sentences = 8});
    ASSERT_EQ(written.size(), lines.size()) << "pieces of at most " << most;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(written[i].text(), together[i].text()) << i;
      EXPECT_EQ(written[i].n_best[0].score, together[i].n_best[0].score) << i;
    }
  }
}

TEST_F(TranslatorStreamTest, AStreamHoldsNoMoreThanItNeeds) {
  constexpr size_t kSentences = 20000, kPiece = 64;
  const TranslateOptions options{.generation = GenerationConfig{.beam_size = 1, .max_length = 3}};
  const auto distinct = translate({"a1 a2 a3", "a4", ""}, options);
  size_t read = 0, written = 0, most = 0;
  const auto piece = [&](bool) {
    std::vector<StreamedSentence> sentences;
    for (; sentences.size() < kPiece && read < kSentences; ++read)
      sentences.push_back({.text = std::vector{"a1 a2 a3", "a4", ""}[read % 3]});
    most = std::max(most, read - written);
    return sentences;
  };
  const auto write = [&](const std::vector<Translation>& translations) {
    for (const Translation& t : translations) EXPECT_EQ(t.text(), distinct[written++ % 3].text());
  };
  translator_.translate({.read = piece, .write = write}, options);
  EXPECT_EQ(written, kSentences);
  EXPECT_LE(most, 2048 + kPiece);
}

TEST_F(TranslatorStreamTest, WhatCameBeforeAnErrorIsWritten) {
  const auto alone = translate({"a1 a2", "a3"});
  int pieces = 0;
  std::vector<std::string> written;
  const auto read = [&](bool) -> std::vector<StreamedSentence> {
    if (++pieces == 3) fail<DataError>("line 3 is broken");
    return {{.text = pieces == 1 ? "a1 a2" : "a3"}};
  };
  const auto write = [&](const std::vector<Translation>& translations) {
    for (const Translation& t : translations) written.push_back(t.text());
  };
  EXPECT_EQ(message_of<DataError>([&] { translator_.translate({.read = read, .write = write}); }), "line 3 is broken");
  EXPECT_EQ(written, (std::vector<std::string>{alone[0].text(), alone[1].text()}));
}

TEST_F(TranslatorStreamTest, ASentenceThatIsTooLargeForTheCacheIsNamedAndSkippedAlone) {
  const Translator tight = make_tight();
  const std::string large = "a1 a2 a3 a4 a5";
  std::vector<Translation> written;
  std::vector<std::string> told;
  std::vector<StreamedSentence> piece;
  const auto translate_stream = [&](const std::function<void(const std::string&)>& skip) {
    written.clear();
    piece = {{.text = "a1 a2"}, {.text = large, .place = "news:2"}, {.text = "a3 a4 a5 a6"}};
    tight.translate({.read = [&](bool) { return std::exchange(piece, {}); },
                     .write =
                         [&](std::vector<Translation> translations) {
                           for (Translation& t : translations) written.push_back(std::move(t));
                         },
                     .skip = skip});
  };
  const std::string refusal = "news:2: request: its cache may come to";
  EXPECT_THAT(message_of<ConfigError>([&] { translate_stream({}); }), HasSubstr(refusal));
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].text(), translator_.translate("a1 a2").text());
  translate_stream([&](const std::string& what) { told.push_back(what); });
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr(refusal));
  ASSERT_EQ(written.size(), 3u);
  EXPECT_EQ(written[0].text(), translator_.translate("a1 a2").text());
  EXPECT_EQ(written[1].text(), "");
  EXPECT_EQ(written[1].error, told[0]);
  EXPECT_FALSE(written[1].n_best.front().finished);
  EXPECT_EQ(written[2].text(), translator_.translate("a3 a4 a5 a6").text());
  EXPECT_THAT(message_of<ConfigError>([&] {
                tight.translate({"a1", large});
              }),
              HasSubstr("sentence 2: request: its cache may come to"));
}

TEST_F(TranslatorStreamTest, WhatIsHandedOverOfASkippedSentenceIsWhatIsWritten) {
  const Translator tight = make_tight();
  std::vector<StreamedSentence> piece = {{.text = "a1"}, {.text = "\xff"}, {.text = "a1 a2 a3 a4 a5"}, {.text = ""}};
  std::map<size_t, Translation> handed;
  std::vector<Translation> written;
  tight.translate({.read = [&](bool) { return std::exchange(piece, {}); },
                   .write =
                       [&](std::vector<Translation> translations) {
                         for (Translation& t : translations) written.push_back(std::move(t));
                       },
                   .skip = [](const std::string&) {}},
                  {.on_translation = [&](size_t index, const Translation& t) { handed[index] = t; }});
  ASSERT_EQ(written.size(), 4u);
  ASSERT_EQ(handed.size(), 4u);
  EXPECT_EQ(written[1].error, "sentence 2: is not valid UTF-8");
  EXPECT_THAT(written[2].error, HasSubstr("sentence 3: request: its cache may come to"));
  for (size_t i = 0; i < written.size(); ++i) {
    const bool skipped = i == 1 || i == 2;
    EXPECT_EQ(written[i].error.empty(), !skipped) << i;
    EXPECT_EQ(written[i].n_best.front().finished, handed[i].n_best.front().finished) << i;
    EXPECT_EQ(handed[i].error, written[i].error) << i;
    EXPECT_EQ(handed[i].text(), written[i].text()) << i;
    if (skipped) {
      EXPECT_FALSE(handed[i].n_best.front().finished) << i;
    }
  }
}

}  // namespace
}  // namespace attune
