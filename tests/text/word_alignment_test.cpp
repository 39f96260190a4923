#include "attune/text/word_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attune/base/error.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WordAlignment, TokensBelongToWordsOfTheText) {
  const WhitespaceTokenizer subwords({"a@@", "b@@", "c", "d"}, "@@");
  EXPECT_THAT(words_of_tokens(subwords, subwords.encode("a@@ b@@ c d a@@ c")), ElementsAre(0, 0, 0, 1, 2, 2));
  const auto characters = CharacterTokenizer::build_from_texts({" ab"});
  EXPECT_THAT(words_of_tokens(characters, characters.encode("ab  a b")), ElementsAre(0, 0, 1, 1, 1, 2, 2));
  EXPECT_THAT(words_of_tokens(characters, characters.encode(" a ")), ElementsAre(0, 0, 0));
  EXPECT_THAT(words_of_tokens(characters, characters.encode("  ")), ElementsAre(-1, -1));
  EXPECT_THAT(words_of_tokens(characters, {}), IsEmpty());
}

TEST(WordAlignment, SpecialTokensAreInNoWord) {
  const WhitespaceTokenizer words({"a", "b"});
  const std::vector<int32_t> ids = {words.bos_id(), words.encode("a")[0], words.unk_id(), words.eos_id(),
                                    words.pad_id()};
  EXPECT_THAT(words_of_tokens(words, ids), ElementsAre(-1, 0, 1, -1, -1));
}

// Decodes all tokens up to each: the plain reference.
std::vector<int32_t> words_by_prefixes(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> words;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string text = tokenizer.decode(ids.first(i + 1));
    const bool is_space = text.empty() || text.back() == ' ';
    words.push_back(static_cast<int32_t>(count_words(text)) - (is_space ? 0 : 1));
  }
  return words;
}

TEST(WordAlignment, LongTextsAreTheSameAsByPrefixes) {
  std::string text = "a";
  for (int i = 0; i < 1500; ++i) text += i * i % 7 < 3 ? " b" : i % 31 == 0 ? "  a" : "b";
  text += std::string(400, 'a') + " a";  // a word longer than what is decoded at once
  const auto characters = CharacterTokenizer::build_from_texts({"ab "});
  const auto ids = characters.encode(text);
  EXPECT_EQ(words_of_tokens(characters, ids), words_by_prefixes(characters, ids));

  std::string subwords = "c";
  for (int i = 0; i < 1500; ++i) subwords += i * i % 7 < 3 ? " c" : " a@@";
  const WhitespaceTokenizer tokenizer({"a@@", "c"}, "@@");
  const auto tokens = tokenizer.encode(subwords + " c");
  EXPECT_EQ(words_of_tokens(tokenizer, tokens), words_by_prefixes(tokenizer, tokens));
}

// Counts the tokens that it decodes.
class CountingTokenizer final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text) const override { return characters_.encode(text); }
  int32_t vocab_size() const override { return characters_.vocab_size(); }
  std::string piece(int32_t id) const override { return characters_.piece(id); }
  std::string kind() const override { return "counting"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}
  size_t decoded() const { return decoded_; }

 private:
  std::string join(const std::vector<int>& ids) const override {
    decoded_ += ids.size();
    return characters_.decode(ids);
  }
  CharacterTokenizer characters_ = CharacterTokenizer::build_from_texts({"ab "});
  mutable size_t decoded_ = 0;
};

TEST(WordAlignment, ATextWithoutSpacesTakesLinearWork) {
  const CountingTokenizer tokenizer;
  const auto ids = tokenizer.encode(std::string(2000, 'a') + " b " + std::string(1000, 'b') + " a");
  const auto words = words_of_tokens(tokenizer, ids);
  EXPECT_LT(tokenizer.decoded(), 256 * ids.size());
  EXPECT_EQ(words, words_by_prefixes(tokenizer, ids));
}

TEST(WordAlignment, PairsOfWordsInPharaohsFormat) {
  // Source tokens 0 and 1 are one word; token 3 would be eos.
  const std::vector<int32_t> source = {0, 0, 1}, target = {0, 1, 1, 2, 3}, alignment = {2, 0, 1, 3, 0};
  const WordAlignment pairs = align_words(source, target, alignment);
  EXPECT_EQ(pharaoh(pairs), "0-1 0-3 1-0");
  EXPECT_EQ(pharaoh({}), "");
}

TEST(WordAlignment, ReadsPharaohsFormat) {
  EXPECT_EQ(parse_pharaoh("0-1  2-0\t0-0 2-0", 3, 2, "x"), (WordAlignment{{0, 0}, {0, 1}, {2, 0}}));
  EXPECT_THAT(parse_pharaoh("", 0, 0, "x"), IsEmpty());
  EXPECT_THAT(parse_pharaoh(" \t", 1, 1, "x"), IsEmpty());
}

TEST(WordAlignment, RefusesWhatIsNoAlignmentOfTheSentences) {
  for (const char* bad : {"0", "0-", "-0", "0-0-0", "a-b", "0:1", "0-1x", "x0-1", "--", "0--1", "-1-0", "+1-0", "1.0-2",
                          "99999999999999999999-0", "0-2147483648", "0-0,1-1"})
    EXPECT_EQ(message_of<DataError>([&] { parse_pharaoh("1-1 " + std::string(bad), 9, 9, "a.align:7"); }),
              "a.align:7: \"" + std::string(bad) + "\" is no pair of words, needs two numbers as in 0-1");
  EXPECT_EQ(message_of<DataError>([] { parse_pharaoh("3-0", 3, 2, "a.align:7"); }),
            "a.align:7: 3-0 is outside of the sentences, which have 3 and 2 words");
  EXPECT_THROW(parse_pharaoh("0-2", 3, 2, "x"), DataError);
  EXPECT_THROW(parse_pharaoh("0-0", 0, 0, "x"), DataError);
}

RC_GTEST_PROP(WordAlignment, WritingAndReadingIsTheSame, ()) {
  auto alignment = *rc::gen::container<WordAlignment>(
      rc::gen::pair(rc::gen::inRange<int32_t>(0, 50), rc::gen::inRange<int32_t>(0, 40)));
  std::sort(alignment.begin(), alignment.end());
  alignment.erase(std::unique(alignment.begin(), alignment.end()), alignment.end());
  RC_ASSERT(parse_pharaoh(pharaoh(alignment), 50, 40, "x") == alignment);
}

RC_GTEST_PROP(WordAlignment, AnyTextIsReadOrRefused, (const std::vector<char>& bytes)) {
  static constexpr std::string_view kLikely = "0123456789- ";
  std::string text;
  for (const char c : bytes) text += c % 4 == 0 ? c : kLikely[static_cast<unsigned char>(c) % kLikely.size()];
  try {
    for (const auto& [source, target] : parse_pharaoh(text, 30, 20, "x")) {
      RC_ASSERT(source >= 0 && source < 30);
      RC_ASSERT(target >= 0 && target < 20);
    }
  } catch (const DataError& error) {
    RC_ASSERT(std::string_view(error.what()).starts_with("x: "));
  }
}

}  // namespace
}  // namespace attune
