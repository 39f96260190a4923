#include "attune/inference/stop_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/base/random.h"
#include "attune/inference/growing_text.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

// Token 1 ends in the middle of a character.
class TwoTokens final : public Tokenizer {
 public:
  TwoTokens() { special_ = {.pad = -1, .unk = -1, .bos = -1, .eos = -1}; }
  std::vector<int32_t> encode(std::string_view) const override { return {}; }
  int32_t vocab_size() const override { return 2; }
  std::string piece(int32_t id) const override { return id == 0 ? "a" : "END\xEF\xBF\xBD"; }
  std::string kind() const override { return "two tokens"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}

 protected:
  std::string join(const std::vector<int>& ids) const override {
    std::string text;
    for (const int id : ids) text += piece(id);
    return text;
  }
};

TEST(StopStrings, HoldsBackWhatMayBecomeOne) {
  StopStrings stop({"END", "Enough"});
  EXPECT_EQ(stop.push("The E"), "The ");
  EXPECT_EQ(stop.push("gg, the EN"), "Egg, the ");
  EXPECT_EQ(stop.push("EN"), "EN");
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.push("D and more"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, KeptOnesAreTextWithTheRestOfTheirPiece) {
  StopStrings stop({"END", "Enough"}, true);
  EXPECT_EQ(stop.push("The EN"), "The ");
  EXPECT_EQ(stop.push("D and more"), "END and more");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, AKeptOneEndsATextWithItsWholeToken) {
  const TwoTokens tokenizer;
  for (const bool keep : {true, false}) {
    std::string arrived;
    GrowingText text(IncrementalDecoder(tokenizer, {}, false), StopStrings({"END"}, keep),
                     [&](std::string_view added) { arrived += added; });
    EXPECT_TRUE(text.push({.sample = 0, .token = 0, .end = {}}));
    EXPECT_FALSE(text.push({.sample = 0, .token = 1, .end = {}}));
    EXPECT_EQ(arrived, keep ? "aEND\xEF\xBF\xBD" : "a");
    EXPECT_EQ(text.result({.tokens = {0, 1}}).text, arrived);
  }
}

TEST(StopStrings, WhatIsHeldBackAtTheEndIsText) {
  StopStrings stop({"\n\n"});
  EXPECT_EQ(stop.push("line\n"), "line");
  EXPECT_EQ(stop.finish(), "\n");
  EXPECT_FALSE(stop.found());
}

TEST(StopStrings, NoneHoldsNothingBack) {
  StopStrings stop({});
  EXPECT_EQ(stop.push("text"), "text");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopStrings, TheOneThatIsCompleteFirstCounts) {
  StopStrings shorter({"abcd", "bc"});
  EXPECT_EQ(shorter.push("xabcd"), "xa");
  StopStrings longer({"cd", "abcd"});
  EXPECT_EQ(longer.push("xabcd"), "x") << "of two that end together the longer one";
}

TEST(StopStrings, PiecesMakeNoDifference) {
  Random random(3);
  for (int trial = 0; trial < 500; ++trial) {
    const auto word = [&](size_t longest) {
      std::string text(1 + random.below(longest), 'a');
      for (char& c : text) c = static_cast<char>('a' + random.below(2));
      return text;
    };
    const std::vector<std::string> strings = {word(5), word(4), word(7)};
    const std::string text = word(30);
    StopStrings whole(strings), pieces(strings);
    const std::string at_once = whole.push(text);
    std::string by_pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random.below(4);
      by_pieces += pieces.push(text.substr(at, length));
      at += length;
      ASSERT_TRUE(text.starts_with(by_pieces));
    }
    ASSERT_EQ(by_pieces, at_once);
    ASSERT_EQ(pieces.found(), whole.found());
    if (!whole.found()) {
      ASSERT_EQ(by_pieces + pieces.finish(), text);
    } else {
      for (const std::string& s : strings) ASSERT_EQ(by_pieces.find(s), std::string::npos);
    }
  }
}

TEST(StopStrings, RefusesEmptyAndEndless) {
  EXPECT_THROW(StopStrings({""}), ConfigError);
  EXPECT_THROW(StopStrings({std::string(5000, 'a')}), ConfigError);
}

}  // namespace
}  // namespace attune
