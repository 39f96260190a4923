#include "attune/text/sentence_piece_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "attune/base/random.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/text/sentence_piece_text.h"

namespace attune {
namespace {

using Kind = SentencePieceOptions::Kind;
using ::testing::MatchesRegex;

std::string trained(Kind kind, bool byte_fallback = false) {
  const int32_t size = byte_fallback ? 400 : 100;
  return train_sentence_piece(sentence_piece_text(), {.kind = kind, .vocab_size = size, .byte_fallback = byte_fallback})
      ->model();
}

// Known and unknown characters, alone and in runs, and texts that look like pieces.
std::string random_text(Random& random) {
  constexpr std::array kParts = {"a",      "the ",   "Hund", "\u65e5", "\U0001F600", "\u0416", " ",  "  ",
                                 "\u2581", "<0x41>", "A",    "<unk>",  "</s>",       "\ufdfa", "\t", "1"};
  std::string text;
  for (auto left = static_cast<int>(random.uniform() * 40); left > 0; --left)
    text += kParts[static_cast<size_t>(random.uniform() * kParts.size())];
  return text;
}

// The library's own processor of the same model is the specification.
void expect_same_as_the_library(const std::string& model) {
  const auto processor = load_sentence_piece(model, "m");
  sentencepiece::SentencePieceProcessor plain;
  ASSERT_TRUE(plain.LoadFromSerializedProto(model).ok());
  ASSERT_EQ(processor->GetPieceSize(), plain.GetPieceSize());
  EXPECT_EQ(processor->unk_id(), plain.unk_id());
  EXPECT_EQ(processor->PieceToId("<0x41>"), plain.PieceToId("<0x41>"));
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random);
    std::vector<int> ids, expected_ids;
    std::vector<std::string> pieces, expected_pieces;
    encode(*processor, text, ids);
    encode(*processor, text, pieces);
    ASSERT_TRUE(plain.Encode(text, &expected_ids).ok());
    ASSERT_TRUE(plain.Encode(text, &expected_pieces).ok());
    ASSERT_EQ(ids, expected_ids) << text;
    ASSERT_EQ(pieces, expected_pieces) << text;
    std::string decoded, expected;
    ASSERT_TRUE(processor->Decode(ids, &decoded).ok());
    ASSERT_TRUE(plain.Decode(ids, &expected).ok());
    ASSERT_EQ(decoded, expected);
  }
  std::string decoded;
  EXPECT_FALSE(processor->Decode(std::vector<int>{plain.GetPieceSize()}, &decoded).ok()) << "no added piece is seen";
}

class SentencePieceProcessorKinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, SentencePieceProcessorKinds, testing::Values(Kind::unigram, Kind::bpe));

TEST_P(SentencePieceProcessorKinds, CutsTextsAsTheLibraryDoes) {
  expect_same_as_the_library(trained(GetParam()));
}

TEST_P(SentencePieceProcessorKinds, LeavesModelsWithPiecesOfBytesAsTheyAre) {
  const std::string with_bytes = trained(GetParam(), true), normal = "\x0A\x0A\x0A\x06<0x41>\x18\x01";
  expect_same_as_the_library(with_bytes);
  expect_same_as_the_library(with_bytes + normal);  // and a normal piece with the name of a byte
}

// Without byte_fallback, such a piece could not be told from the piece of the byte that is added.
TEST_P(SentencePieceProcessorKinds, APieceWithTheNameOfAByteNeedsByteFallback) {
  const std::string model = trained(GetParam()), piece = "\x0A\x0A\x0A\x06<0x41>\x18\x01";
  EXPECT_THAT(message_of<FileError>([&] { load_sentence_piece(model + piece, "m"); }),
              MatchesRegex("m: piece [0-9]+ has the name of a byte, <0x41>, but the model has no byte_fallback"));
  expect_same_as_the_library(model + "\x0A\x0A\x0A\x06<0x4g>\x18\x01");  // no name of a byte
}

double seconds_to_encode(const sentencepiece::SentencePieceProcessor& processor, size_t characters) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const std::string text(characters, '1');
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    std::vector<int> ids;
    const double begin = now();
    encode(processor, text, ids);
    least = std::min(least, now() - begin);
    EXPECT_EQ(ids.size(), 2U) << "a space in front, and what is unknown";
  }
  return least;
}

TEST_P(SentencePieceProcessorKinds, ARunOfUnknownCharactersTakesLinearTime) {
  // The model sets byte_fallback and then resets it. The last value counts, so that it has no pieces of bytes.
  const std::string on("\x12\x03\x98\x02\x01", 5), off("\x12\x03\x98\x02\x00", 5);
  const auto processor = load_sentence_piece(trained(GetParam()) + on + off, "m");
  EXPECT_LT(seconds_to_encode(*processor, 400'000), 32 * seconds_to_encode(*processor, 50'000))
      << "linear time is 8 times as long, quadratic time 64";
}

TEST(SentencePieceProcessor, APointerOfGitLfsIsNamed) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n";
  EXPECT_EQ(message_of<FileError>([&] { load_sentence_piece(pointer, "a.model"); }),
            "a.model: is a pointer of Git LFS, not the file itself: run \"git lfs pull\"");
}

}  // namespace
}  // namespace attune
