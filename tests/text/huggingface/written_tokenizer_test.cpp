// Attune's own tokenizers, written in Hugging Face's format and read back: the same ids and texts.

#include "attune/text/huggingface/written_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/sentence_piece_text.h"

namespace attune {
namespace {

struct Written {
  TemporaryFolder folder;
  std::vector<std::string> left_out;
  std::unique_ptr<Tokenizer> tokenizer;

  explicit Written(const Tokenizer& own, const TextFrame& frame = {}) {
    EXPECT_TRUE(huggingface::write_tokenizer(folder.path(), own, {frame, 512}, left_out));
    tokenizer = load_tokenizer(folder / "tokenizer.json");
  }
};

const std::vector<std::string> kHardTexts = {"",
                                             " ",
                                             "  Zwei   Hunde ",
                                             "a",
                                             "the quick brown fox, and Zürich!",
                                             "\u00e9\u0301 \ufb01 \u2460 \u3000x",
                                             "x",
                                             "\tx\t",
                                             "日本語 🙂🙂 ok",
                                             "0123",
                                             "running running runningrunning",
                                             "a\u00a0b",
                                             " a",
                                             "a    b   ",
                                             "▁a▁▁b ▁"};

std::vector<std::string> texts() {
  std::vector<std::string> all = sentence_piece_text();
  all.insert(all.end(), kHardTexts.begin(), kHardTexts.end());
  return all;
}

void expect_same(const Tokenizer& own) {
  const Written written(own);
  EXPECT_EQ(written.tokenizer->vocab_size(), own.vocab_size());
  EXPECT_EQ(written.tokenizer->special_ids().pad, own.pad_id());
  EXPECT_EQ(written.tokenizer->special_ids().unk, own.unk_id());
  EXPECT_EQ(written.tokenizer->special_ids().bos, own.bos_id());
  EXPECT_EQ(written.tokenizer->special_ids().eos, own.eos_id());
  for (const std::string& text : texts()) {
    const std::vector<int32_t> ids = own.encode(text);
    EXPECT_EQ(written.tokenizer->encode(text), ids) << text;
    if (std::ranges::find(ids, own.unk_id()) == ids.end()) {
      EXPECT_EQ(written.tokenizer->decode(ids), own.decode(ids)) << text;
    }
  }
}

class WrittenSentencePiece
    : public testing::TestWithParam<std::tuple<SentencePieceOptions::Kind, SentencePieceOptions::Normalization, bool>> {
};

INSTANTIATE_TEST_SUITE_P(Kinds, WrittenSentencePiece,
                         testing::Combine(testing::Values(SentencePieceOptions::Kind::unigram,
                                                          SentencePieceOptions::Kind::bpe),
                                          testing::Values(SentencePieceOptions::Normalization::nmt_nfkc,
                                                          SentencePieceOptions::Normalization::nmt_nfkc_cf,
                                                          SentencePieceOptions::Normalization::identity),
                                          testing::Bool()));

TEST_P(WrittenSentencePiece, GivesTheSameIdsAndTexts) {
  const auto& [kind, normalization, bytes] = GetParam();
  expect_same(*train_sentence_piece(
      sentence_piece_text(),
      {.kind = kind, .vocab_size = bytes ? 356 : 100, .normalization = normalization, .byte_fallback = bytes}));
}

// A model with more of these fields of its protobuf message: repeated ones are more, others replace.
SentencePieceTokenizer with_fields(const SentencePieceTokenizer& model, const std::string& fields) {
  return SentencePieceTokenizer(model.model() + fields, "tokenizer.model");
}

// As Llama's: spaces stay, and runs of them are pieces.
TEST(WrittenTokenizer, SpacesThatAreKept) {
  const std::string keep = std::string("\x1A\x02\x20\x00", 4);       // remove_extra_whitespaces = false
  const std::string score = std::string("\x15\x00\x00\xB0\xC0", 5);  // -5.5
  const std::string two = "\x0A\x0D\x0A\x06▁▁" + score, inner = "\x0A\x0F\x0A\x08s▁d▁" + score;
  for (const auto kind : {SentencePieceOptions::Kind::unigram, SentencePieceOptions::Kind::bpe}) {
    const auto model = train_sentence_piece(
        sentence_piece_text(),
        {.kind = kind, .vocab_size = 100, .normalization = SentencePieceOptions::Normalization::identity});
    for (const std::string& fields : {keep, keep + two, two, keep + two + inner})
      expect_same(with_fields(*model, fields));
  }
}

TEST(WrittenTokenizer, RefusesSpacesThatHaveNoEquivalent) {
  const auto model = train_sentence_piece(sentence_piece_text(), {.vocab_size = 100});
  const auto message = [&](const std::string& fields) {
    return message_of<ConfigError>([&] { Written(with_fields(*model, fields)); });
  };
  EXPECT_EQ(message("\x12\x03\xC0\x01\x01"),
            "tokenizer.model: a SentencePiece model with treat_whitespace_as_suffix has no equivalent");
  EXPECT_EQ(message(std::string("\x1A\x02\x28\x00", 4)),
            "tokenizer.model: a SentencePiece model with escape_whitespaces = false has no equivalent");
}

TEST(WrittenTokenizer, WordsCharactersAndBytes) {
  const WhitespaceTokenizer words({"Zwei", "Hunde", "a", "quick", "ok"});
  expect_same(words);
  const std::string lines = "a\nquick\r\nok";
  EXPECT_EQ(Written(words).tokenizer->encode(lines), words.encode(lines));
  expect_same(CharacterTokenizer::build_from_texts({"Zwei Hunde \t laufen.", "\n日"}));
  expect_same(ByteTokenizer::from_json("{\"type\": \"bytes\"}", "bytes"));
}

TEST(WrittenTokenizer, FramesTextsAndPairs) {
  const WhitespaceTokenizer own({"a", "b"});
  const Written both(own, {.before = {own.bos_id()}, .after = {own.eos_id()}}),
      end(own, {.before = {}, .after = {own.eos_id()}}), none(own);
  EXPECT_EQ(both.tokenizer->encode_for_model("a b").ids, (std::vector<int32_t>{2, 4, 5, 3}));
  EXPECT_EQ(end.tokenizer->encode_for_model("a").ids, (std::vector<int32_t>{4, 3}));
  EXPECT_EQ(none.tokenizer->encode_for_model("a").ids, (std::vector<int32_t>{4}));
  const Encoding pair = both.tokenizer->encode_pair("a", "b");
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{2, 4, 3, 2, 5, 3}));
  EXPECT_EQ(pair.type_ids, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
}

TEST(WrittenTokenizer, SaysWhatItLeavesOut) {
  EXPECT_THAT(Written(WhitespaceTokenizer({"a@@", "b"}, "@@")).left_out,
              testing::ElementsAre(testing::HasSubstr("@@")));
  const Written written(WhitespaceTokenizer({"a", "b"}));
  EXPECT_TRUE(written.left_out.empty());
  std::vector<std::string> left_out;
  const TemporaryFolder other;
  EXPECT_FALSE(huggingface::write_tokenizer(other.path(), *written.tokenizer, {}, left_out)) << "not Attune's own";
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
}

}  // namespace
}  // namespace attune
