#include "attune/text/sentence_piece_tokenizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "attune/base/file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/sentence_piece_text.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using Kind = SentencePieceOptions::Kind;
using Normalization = SentencePieceOptions::Normalization;

std::string bytes_of(const Tokenizer& tokenizer) {
  const TemporaryFolder folder(memory_folder());
  tokenizer.save(folder / "m");
  return read_file(folder / "m");
}

class SentencePieceKinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, SentencePieceKinds, testing::Values(Kind::unigram, Kind::bpe));

TEST_P(SentencePieceKinds, RoundTripsTextItHasSeen) {
  const auto tokenizer = train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 100});
  EXPECT_EQ(tokenizer->vocab_size(), 100);
  EXPECT_EQ(tokenizer->pad_id(), 0);
  EXPECT_EQ(tokenizer->unk_id(), 1);
  EXPECT_EQ(tokenizer->bos_id(), 2);
  EXPECT_EQ(tokenizer->eos_id(), 3);
  EXPECT_EQ(tokenizer->piece(2), "<s>");
  EXPECT_EQ(tokenizer->file_name(), "tokenizer.model");
  for (const std::string& sentence : sentence_piece_text()) {
    const Ids ids = tokenizer->encode(sentence);
    EXPECT_EQ(tokenizer->decode(ids), sentence);
    EXPECT_LT(ids.size(), sentence.size());
    for (const int32_t id : ids) EXPECT_GT(id, 3);
    Ids framed{2, 0};
    framed.insert(framed.end(), ids.begin(), ids.end());
    framed.insert(framed.end(), {3, 0});
    EXPECT_EQ(tokenizer->decode(framed), sentence) << "pad, bos and eos do not show";
    EXPECT_EQ(tokenizer->decode(framed, true), "<s><pad> " + sentence + "</s><pad>") << "unless they are asked for";
  }
  EXPECT_EQ(tokenizer->encode(""), Ids{});
  EXPECT_EQ(tokenizer->encode("  "), Ids{});
  EXPECT_EQ(tokenizer->decode({}), "");
}

TEST_P(SentencePieceKinds, TrainsTheSameModelFromTheSameText) {
  const SentencePieceOptions options{.kind = GetParam(), .vocab_size = 100};
  const std::string model = bytes_of(*train_sentence_piece(sentence_piece_text(), options));
  EXPECT_EQ(bytes_of(*train_sentence_piece(sentence_piece_text(), options)), model);
  std::string lines;
  for (const std::string& sentence : sentence_piece_text()) lines += sentence + "\r\n";
  const TemporaryFolder folder(memory_folder());
  write_file(folder / "text", lines);
  EXPECT_EQ(bytes_of(*train_sentence_piece_from_files({folder / "text"}, options)), model);
}

TEST_P(SentencePieceKinds, SavesAndLoadsTheSame) {
  const auto tokenizer = train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 100});
  const TemporaryFolder folder(memory_folder());
  tokenizer->save(folder / tokenizer->file_name());
  const auto loaded = load_tokenizer(folder / tokenizer->file_name());
  ASSERT_EQ(loaded->vocab_size(), tokenizer->vocab_size());
  for (int32_t id = 0; id < loaded->vocab_size(); ++id) EXPECT_EQ(loaded->piece(id), tokenizer->piece(id));
  for (const std::string& sentence : sentence_piece_text())
    EXPECT_EQ(loaded->encode(sentence), tokenizer->encode(sentence));
}

TEST_P(SentencePieceKinds, HaveNoMoreTokensThanTheTextYields) {
  const auto size = [](int32_t wanted) {
    const auto tokenizer = train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = wanted});
    const std::string& sentence = sentence_piece_text().front();
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(sentence)), sentence);
    return tokenizer->vocab_size();
  };
  EXPECT_EQ(size(100), 100);
  const int32_t most = size(90'000);
  EXPECT_GT(most, 100);
  EXPECT_LT(most, 1000);
  EXPECT_EQ(size(most), most);
}

TEST_P(SentencePieceKinds, SayWhichVocabularyIsTooSmall) {
  const std::string too_small = message_of<ConfigError>(
      [] { train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 10}); });
  const std::string other = "vocab_size = 10 is less than the characters of this text need: at least ";
  ASSERT_TRUE(too_small.starts_with(other)) << too_small;
  const int32_t least = std::stoi(too_small.substr(other.size()));
  EXPECT_EQ(train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = least})->vocab_size(),
            least);
}

TEST_P(SentencePieceKinds, RefusesTextWithNothingToLearn) {
  const auto error = [](const std::vector<std::string>& text) {
    return message_of<DataError>([&] { train_sentence_piece(text, {.kind = GetParam(), .vocab_size = 20}); });
  };
  const std::string nothing = "there is no text to train a tokenizer on";
  EXPECT_EQ(error({}), nothing);
  EXPECT_EQ(error({"", " ", "\t", "\u00A0 \u200B\uFEFF", "\x01\x02"}), nothing);  // all of it normalizes to nothing
  EXPECT_EQ(error({"\u2585 is the trainer's own mark"}), nothing);
  EXPECT_EQ(error({"good", "\xFF"}), "sentence 2 to train a tokenizer on is not valid UTF-8");
}

TEST_P(SentencePieceKinds, TrainsOnTheSmallestText) {
  const auto tokenizer = train_sentence_piece({"a"}, {.kind = GetParam(), .vocab_size = 6});
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a a")), "a a");
}

TEST_P(SentencePieceKinds, PrintsNothing) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  EXPECT_THROW(train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 10}), ConfigError);
  (void)train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 90'000});
  (void)train_sentence_piece(sentence_piece_text(), {.kind = GetParam(), .vocab_size = 100})->encode("text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(SentencePiece, LearnsFromLongLinesInParts) {
  std::string line;
  for (int i = 0; i < 2000; ++i) line += sentence_piece_text()[static_cast<size_t>(i) % 8] + " ";
  ASSERT_GT(line.size(), 50'000u);
  const auto spaced = train_sentence_piece({line}, {.vocab_size = 100});
  EXPECT_EQ(spaced->decode(spaced->encode("Hunde laufen")), "Hunde laufen");
  std::string unspaced;  // characters of three bytes, which a part must not cut
  for (int i = 0; i < 5000; ++i) unspaced += i % 3 == 0 ? "日" : "本";
  const auto japanese = train_sentence_piece({unspaced}, {.vocab_size = 9});
  for (int32_t id = 4; id < japanese->vocab_size(); ++id) EXPECT_EQ(japanese->piece(id).size() % 3, 0u);
}

TEST(SentencePiece, SamplesALargeCorpus) {
  std::vector<std::string> text(3000, "alpha beta gamma");
  const auto tokenizer = train_sentence_piece(text, {.vocab_size = 14, .max_sentences = 10});
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("gamma alpha")), "gamma alpha");
}

TEST(SentencePiece, ThinsASampleOfLongSentences) {
  std::vector<std::string> text;
  for (int i = 0; i < 3000; ++i) text.emplace_back(i < 1500 ? "alpha beta gamma" : "gamma delta alpha");
  const auto tokenizer = train_sentence_piece(text, {.vocab_size = 17, .max_bytes = 4096});
  for (const char* words : {"gamma beta", "delta alpha"})  // from the beginning and the end of the corpus
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(words)), words);
  EXPECT_THROW(train_sentence_piece(text, {.max_bytes = 4095}), ConfigError);
}

TEST(SentencePiece, UnknownCharactersBecomeUnkOrBytes) {
  const auto plain = train_sentence_piece(sentence_piece_text(), {.vocab_size = 100});
  const Ids ids = plain->encode("日本");
  EXPECT_EQ(ids.back(), plain->unk_id());
  EXPECT_NE(plain->decode(ids).find("\u2047"), std::string::npos);  // "??", SentencePiece's text for <unk>
  const auto bytes = train_sentence_piece(sentence_piece_text(), {.vocab_size = 350, .byte_fallback = true});
  EXPECT_EQ(bytes->decode(bytes->encode("日本 🦊")), "日本 🦊");
}

TEST(SentencePiece, NormalizesAsAsked) {
  const std::string text = "Ａ Hund  B";  // a full-width letter and two spaces
  std::vector<std::string> corpus = sentence_piece_text();
  corpus.push_back(text + " a b hund A");
  const auto with = [&](Normalization normalization) {
    const auto tokenizer = train_sentence_piece(corpus, {.vocab_size = 90, .normalization = normalization});
    return tokenizer->decode(tokenizer->encode(text));
  };
  EXPECT_EQ(with(Normalization::nmt_nfkc), "A Hund B");
  EXPECT_EQ(with(Normalization::nfkc), "A Hund B");
  EXPECT_EQ(with(Normalization::nmt_nfkc_cf), "a hund b");
  EXPECT_EQ(with(Normalization::identity), "Ａ Hund B");
}

TEST(SentencePiece, SeveralThreadsAtOnceGetTheSame) {
  const auto tokenizer = train_sentence_piece(sentence_piece_text(), {.vocab_size = 100});
  std::vector<Ids> expected;
  for (const std::string& sentence : sentence_piece_text()) expected.push_back(tokenizer->encode(sentence));
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        for (int round = 0; round < 50; ++round)
          for (size_t i = 0; i < expected.size(); ++i)
            wrong[t] += tokenizer->encode(sentence_piece_text()[i]) != expected[i] ||
                        tokenizer->decode(expected[i]) != sentence_piece_text()[i];
      });
  }
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0), 0);
}

TEST(SentencePiece, NamesWhatItCannotTake) {
  const auto tokenizer = train_sentence_piece({"a"}, {.vocab_size = 6});
  EXPECT_EQ(message_of<DataError>([&] {
              tokenizer->decode(Ids{4, 9000});
            }),
            "token id 9000 is outside the vocabulary of 6");
  EXPECT_EQ(message_of<DataError>([&] { tokenizer->piece(6); }), "token id 6 is outside the vocabulary of 6");
  EXPECT_THROW(tokenizer->encode(std::string(9 << 20, 'a')), DataError);
  EXPECT_EQ(message_of<ConfigError>([] { train_sentence_piece({"a"}, {.vocab_size = 4}); }),
            "vocab_size = 4 is not between 5 and 1000000");
  EXPECT_THROW(train_sentence_piece({"a"}, {.vocab_size = 100, .byte_fallback = true}), ConfigError);
  EXPECT_THROW(train_sentence_piece({"a"}, {.character_coverage = 0.5}), ConfigError);
  EXPECT_THROW(train_sentence_piece({"a"}, {.threads = 0}), ConfigError);
  EXPECT_THROW(train_sentence_piece({"a"}, {.max_sentences = 0}), ConfigError);
}

TEST(LoadTokenizer, KnowsTheKindByNameOrContent) {
  const TemporaryFolder folder(memory_folder());
  const std::string json = R"({"type": "whitespace", "pieces": ["<pad>", "<unk>", "<s>", "</s>", "a"]})";
  write_file(folder / "v.json", json);
  write_file(folder / "v", " \n" + json);
  const auto model = train_sentence_piece({"a"}, {.vocab_size = 6});
  model->save(folder / "m.model");
  model->save(folder / "m");
  EXPECT_EQ(load_tokenizer(folder / "v.json")->file_name(), "vocabulary.json");
  EXPECT_EQ(load_tokenizer(folder / "v")->file_name(), "vocabulary.json");
  EXPECT_EQ(load_tokenizer(folder / "m.model")->file_name(), "tokenizer.model");
  EXPECT_EQ(load_tokenizer(folder / "m")->file_name(), "tokenizer.model");
  write_file(folder / "wrong.model", json);
  EXPECT_TRUE(message_of<FileError>([&] {
                load_tokenizer(folder / "wrong.model");
              }).starts_with((folder / "wrong.model").string()));
  EXPECT_THROW(load_tokenizer(folder / "absent.model"), FileError);
  std::filesystem::resize_file(folder / "m", (64 << 20) + 1);
  EXPECT_NE(message_of<FileError>([&] { load_tokenizer(folder / "m"); }).find("67108865 bytes"), std::string::npos);
}

}  // namespace
}  // namespace attune
