#include "attune/inference/incremental_decoder.h"

#include <gtest/gtest.h>

#include <cctype>

#include "attune/base/random.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/text_file.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/small_model.h"

namespace attune {
namespace {

/// The pieces, each of them whole characters.
std::string decoded(IncrementalDecoder& decoder, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    const std::string added = decoder.push(id);
    EXPECT_TRUE(valid_utf8(added));
    text += added;
  }
  return text + decoder.finish();
}

TEST(IncrementalDecoder, BytesWaitUntilTheyAreCharacters) {
  const ByteTokenizer bytes;
  IncrementalDecoder decoder(bytes, {}, false);
  const std::vector<int32_t> ids = bytes.encode("a\xE2\x82\xAC");
  EXPECT_EQ(decoder.push(ids[0]), "a");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.push(ids[2]), "");
  EXPECT_EQ(decoder.push(ids[3]), "\xE2\x82\xAC");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.finish(), "\xEF\xBF\xBD") << "half of a character is none";
}

TEST(IncrementalDecoder, ACharacterThatThePromptBeganBecomesWhole) {
  const ByteTokenizer bytes;
  const std::vector<int32_t> ids = bytes.encode("x\xF0\x9F\x98\x80 hello");
  IncrementalDecoder decoder(bytes, std::span(ids).first(4), false);
  EXPECT_EQ(decoded(decoder, std::span(ids).subspan(4)), "\xF0\x9F\x98\x80 hello");
}

TEST(IncrementalDecoder, RandomBytesBecomeWhatTheyAreTogether) {
  const ByteTokenizer bytes;
  Random random(5);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<int32_t> ids(1 + random.below(300));
    for (int32_t& id : ids) id = static_cast<int32_t>(4 + (random.below(2) == 0 ? 0x80 : 0) + random.below(128));
    IncrementalDecoder decoder(bytes, bytes.encode("before"), false);
    ASSERT_EQ(decoded(decoder, ids), bytes.decode(ids));
  }
}

TEST(IncrementalDecoder, SpacesOfPiecesAreThoseOfTheWholeText) {
  SentencePieceOptions options;
  options.vocab_size = 300;
  const auto pieces = train_sentence_piece(small_text(), options);
  std::string text;
  for (const std::string& line : small_text(40)) text += (text.empty() ? "" : " ") + line;
  const std::vector<int32_t> ids = pieces->encode(text);
  ASSERT_GT(ids.size(), 500u);
  for (const size_t before : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{100}}) {
    IncrementalDecoder decoder(*pieces, std::span(ids).first(before), false);
    const std::string start = pieces->decode(std::span(ids).first(before));
    EXPECT_EQ(start + decoded(decoder, std::span(ids).subspan(before)), pieces->decode(ids)) << before;
  }
  std::vector<int32_t> prompt = {pieces->bos_id()};
  IncrementalDecoder decoder(*pieces, prompt, false);
  EXPECT_EQ(decoded(decoder, ids), pieces->decode(ids)) << "a text begins without a space";
}

TEST(IncrementalDecoder, RunsOfBytesBecomeWhatTheyAreTogether) {
  const auto llama = load_tokenizer(std::filesystem::path(source_dir()) / "tests/text/data/llama.json");
  const std::vector<int32_t> text = llama->encode("one 😀😁😀😁 two 龍虎龍虎 three 😁");
  ASSERT_EQ(llama->piece(text.back()), "<0x81>");
  for (size_t before = 0; before <= text.size(); ++before) {
    const std::string start = llama->decode(std::span(text).first(before));
    if (start.ends_with("\uFFFD")) continue;  // no text ends within a character
    IncrementalDecoder decoder(*llama, std::span(text).first(before), false);
    EXPECT_EQ(start + decoded(decoder, std::span(text).subspan(before)), llama->decode(text)) << before;
  }
  Random random(7);
  const int32_t first_byte = llama->token_id("<0x00>");
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<int32_t> ids(1 + random.below(200));
    for (int32_t& id : ids)
      id = random.below(3) > 0 ? first_byte + static_cast<int32_t>(random.below(256)) : text[random.below(4)];
    IncrementalDecoder decoder(*llama, {}, false);
    ASSERT_EQ(decoded(decoder, ids), llama->decode(ids));
  }
}

TEST(IncrementalDecoder, WordsAreGluedAsInTheWholeText) {
  const WhitespaceTokenizer words({"fo@@", "o", "bar"}, "@@");
  const std::vector<int32_t> ids = words.encode("fo@@ o bar fo@@ o");
  IncrementalDecoder decoder(words, std::span(ids).first(1), false);
  EXPECT_EQ(decoded(decoder, std::span(ids).subspan(1)), "o bar foo");
}

TEST(IncrementalDecoder, EosIsALineEndWhereLinesEndWithIt) {
  const WhitespaceTokenizer words({"a", "b"});
  const int32_t a = words.encode("a")[0], b = words.encode("b")[0], eos = words.eos_id();
  const std::vector<int32_t> before = {a, eos, b};
  IncrementalDecoder lines(words, before, true);
  EXPECT_EQ(decoded(lines, std::vector{a, eos, b, a, eos}), " a\nb a\n");
  IncrementalDecoder no_lines(words, before, false);
  EXPECT_EQ(decoded(no_lines, std::vector{a, eos, b}), " a b");
}

// Bytes, and how many tokens were decoded at once.
class MeasuredTokenizer final : public Tokenizer {
 public:
  /// `runs`: letters and spaces are no bytes of a run, as in Llama's vocabulary, others are.
  explicit MeasuredTokenizer(bool runs) : runs_(runs) { special_ = bytes_.special_ids(); }
  std::vector<int32_t> encode(std::string_view text) const override { return bytes_.encode(text); }
  int32_t vocab_size() const override { return bytes_.vocab_size(); }
  std::string piece(int32_t id) const override {
    const std::string text = bytes_.decode(std::span(&id, 1));
    return runs_ && !text.empty() && (text == " " || std::isalpha(static_cast<unsigned char>(text[0])) != 0)
               ? text
               : bytes_.piece(id);
  }
  std::string kind() const override { return runs_ ? "Hugging Face" : "measured"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}
  size_t most() const { return most_; }

 private:
  std::string join(const std::vector<int>& ids) const override {
    most_ = std::max(most_, ids.size());
    return bytes_.decode(std::vector<int32_t>(ids.begin(), ids.end()), true);
  }
  bool runs_;
  ByteTokenizer bytes_;
  mutable size_t most_ = 0;
};

// Neither blank text nor bytes that are no characters make a step slow, be it that all or only line ends are bytes of a
// run.
TEST(IncrementalDecoder, DecodesFewTokensAtOnce) {
  const std::string blank(3000, '\n'), no_characters(3000, '\x80');
  std::string lines, blank_lines;
  for (int i = 0; i < 1500; ++i) lines += "a\n", blank_lines += " \n";
  for (const bool runs : {false, true}) {
    for (const std::string& text :
         {blank + "a b", "a" + blank + "b\n", no_characters + "b", "ab" + no_characters, lines, blank_lines,
          "b" + blank_lines + lines, blank + no_characters + blank + "\xC3\xA9" + no_characters}) {
      const MeasuredTokenizer tokenizer(runs);
      const std::vector<int32_t> ids = tokenizer.encode(text);
      std::string whole;
      IncrementalDecoder decoder(tokenizer, {}, false);
      for (const int32_t id : ids) whole += decoder.push(id);
      if (!runs || text == lines || text == blank_lines) {
        EXPECT_LE(tokenizer.most(), 300u) << runs;
      }
      EXPECT_EQ(whole + decoder.finish(), tokenizer.decode(ids)) << runs;
    }
  }
}

TEST(IncrementalDecoder, RefusesIdsOutsideTheVocabulary) {
  const ByteTokenizer bytes;
  IncrementalDecoder decoder(bytes, {}, false);
  EXPECT_THROW(decoder.push(260), DataError);
  EXPECT_THROW(decoder.push(-1), DataError);
}

}  // namespace
}  // namespace attune
