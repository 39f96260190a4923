// Whatever a tokenizer file holds: a tokenizer that works or attune::Error.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "attune/base/file.h"
#include "attune/base/random.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/sentence_piece_text.h"

namespace attune {
namespace {

const std::vector<std::string> kTexts = {"Zwei Hunde laufen über die grüne Wiese.",
                                         "日本語 ｶﾞ Å Å ﷺ ½ ﬁ",
                                         "🙂 👩‍👩‍👧 \u0301\u0301",
                                         "",
                                         std::string("\0\xFF\xC3(", 4),
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  "};

/// Uses every function of a tokenizer.
void exercise(const Tokenizer& tokenizer) {
  for (const std::string& text : kTexts)
    for (const int32_t id : tokenizer.encode(text)) ASSERT_LT(static_cast<uint32_t>(id), tokenizer.vocab_size());
  std::vector<int32_t> all(static_cast<size_t>(tokenizer.vocab_size()));
  std::iota(all.begin(), all.end(), 0);
  tokenizer.decode(all);
  for (const int32_t id : {tokenizer.pad_id(), tokenizer.unk_id(), tokenizer.bos_id(), tokenizer.eos_id()})
    ASSERT_FALSE(tokenizer.piece(id).empty());
}

/// Whether the tokenizer is accepted; only attune::Error may come out.
template <class Make>
bool accepted(Make&& make) {
  try {
    const auto tokenizer = make();
    if constexpr (requires { *tokenizer; })
      exercise(*tokenizer);
    else
      exercise(tokenizer);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string trained_model(SentencePieceOptions options) {
  const TemporaryFolder folder(memory_folder());
  train_sentence_piece(sentence_piece_text(), options)->save(folder / "m");
  return read_file(folder / "m");
}

bool accepted_model(const std::string& model) {
  return accepted([&] { return SentencePieceTokenizer(model, "fuzz.model"); });
}

TEST(TokenizerFuzz, MutatedVocabulariesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  WhitespaceTokenizer({"der", "Straßen", "ab@@", "\"\\", "🙂"}, "@@").save(folder / "v");
  const std::string valid = read_file(folder / "v");
  const std::vector<std::string> dictionary{
      "\"",      ",",       "[",    "]", "{",        "}",         "null",        "1e999",
      "\\u0000", "\\ud800", "\xFF", " ", "\"<s>\",", "\"type\":", "\"pieces\":", "18446744073709551616"};
  Random random(20240602);
  constexpr int kRounds = 5000;
  int successes = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string json = mutate(valid, dictionary, random);
    successes += accepted([&] { return WhitespaceTokenizer::from_json(json, "fuzz.json"); });
  }
  EXPECT_GT(successes, kRounds / 100);
  EXPECT_LT(successes, kRounds);
}

TEST(TokenizerFuzz, MutatedCharactersAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  CharacterTokenizer({"\n", "\"", "\\", "a", "ü", "日", "🙂"}).save(folder / "v");
  const std::string characters = read_file(folder / "v");
  const std::vector<std::string> dictionary{"\"",        "bytes",          "[",       "]",    "\"b\",",
                                            "\u0000",    "\\ud83d\\ude42", "\xFF",    "null", "1e999,",
                                            "\"type\":", "\"ab\",",        "\\ud800", "}{"};
  Random random(20240605);
  constexpr int kRounds = 5000;
  int successes = 0;
  for (int round = 0; round < kRounds; ++round) {
    write_file(folder / "tokenizer.json", mutate(characters, dictionary, random));
    successes += accepted([&] { return load_tokenizer(folder / "tokenizer.json"); });
  }
  EXPECT_GT(successes, kRounds / 100);
  EXPECT_LT(successes, kRounds);
}

TEST(TokenizerFuzz, MutatedModelsAreReadOrRefused) {
  const std::vector<std::string> dictionary{"\x0A\x00",
                                            "\x10\x01",
                                            "\x18\x04",
                                            "\x18\x06",
                                            "\x12\x05",
                                            "\x22\x02",
                                            "\xFF\xFF\xFF\xFF\x0F",
                                            "\x0A\x03\x0A\x01"
                                            "a",
                                            "\x80",
                                            std::string(64, 'x')};
  Random random(20240603);
  constexpr int kRounds = 2000;
  for (const auto kind : {SentencePieceOptions::Kind::unigram, SentencePieceOptions::Kind::bpe}) {
    for (const bool bytes : {false, true}) {
      const std::string valid = trained_model({.kind = kind,
                                               .vocab_size = bytes ? 330 : 90,
                                               .normalization = SentencePieceOptions::Normalization::identity,
                                               .byte_fallback = bytes});
      int successes = 0;
      for (int round = 0; round < kRounds; ++round) successes += accepted_model(mutate(valid, dictionary, random));
      EXPECT_GT(successes, kRounds / 100);
      EXPECT_LT(successes, kRounds);
    }
  }
}

// The normalizer's trie is most of a model. Its units are words that point into it, so words are what is changed.
TEST(TokenizerFuzz, MutatedNormalizersAreReadOrRefused) {
  const std::string valid = trained_model({.vocab_size = 90});
  const size_t table = valid.find("nmt_nfkc") + 8;
  ASSERT_GT(valid.size(), table + 200'000);
  Random random(20240604);
  constexpr int kRounds = 200;
  int successes = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string model = valid;
    for (uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const size_t place = table + random.below(random.below(2) == 0 ? 2048 : valid.size() - table - 4);
      uint32_t word = 0;
      std::memcpy(&word, model.data() + place, 4);
      word = random.below(2) == 0 ? word ^ 1u << random.below(32) : random.next();
      std::memcpy(model.data() + place, &word, 4);
    }
    successes += accepted_model(model);
  }
  EXPECT_GT(successes, 0);
  EXPECT_LT(successes, kRounds);
}

}  // namespace
}  // namespace attune
