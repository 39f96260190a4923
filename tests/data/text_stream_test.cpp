#include "attune/data/text_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attune/base/file.h"
#include "attune/base/parallel.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using Offsets = std::vector<int64_t>;

constexpr int32_t kBos = 2, kEos = 3;

class TextStream : public testing::Test {
 protected:
  TokenDocuments load(const std::vector<std::string>& contents, const Tokenizer& tokenizer,
                      const TextStreamOptions& options = {}) {
    std::vector<std::filesystem::path> files;
    for (const std::string& content : contents) {
      files.push_back(folder_ / std::to_string(files.size()));
      write_file(files.back(), content);
    }
    return load_text(files, tokenizer, options);
  }
  /// Each document as text; its specials are left out.
  std::vector<std::string> texts_of(const TokenDocuments& documents, const Tokenizer& tokenizer) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < documents.documents(); ++i) texts.push_back(tokenizer.decode(documents.document(i)));
    return texts;
  }

  const ByteTokenizer bytes_;
  const WhitespaceTokenizer words_{std::vector<std::string>{"a", "b", "c"}};
  TemporaryFolder folder_{memory_folder()};
};

TEST_F(TextStream, StreamsKeepTheTextExactly) {
  const std::string text = "  one\r\n\n\ttwo\n\nno end";
  const TokenDocuments documents = load({text}, bytes_);
  EXPECT_EQ(documents.ids, bytes_.encode(text));
  EXPECT_EQ(documents.offsets, (Offsets{0, documents.tokens()}));
}

TEST_F(TextStream, EosSeparatesTheFilesOfAStream) {
  const TokenDocuments documents = load({"a\n", "", "b"}, bytes_);
  EXPECT_EQ(documents.ids, (Ids{'a' + 4, '\n' + 4, kEos, kEos, 'b' + 4}));
  EXPECT_EQ(documents.documents(), 1);
}

TEST_F(TextStream, OtherTokenizersGetEosForTheLineEnds) {
  const TokenDocuments documents = load({"a b\r\n\nc", "b\n"}, words_);
  EXPECT_EQ(documents.ids, (Ids{4, 5, kEos, kEos, 6, kEos, 5, kEos}));
  EXPECT_EQ(documents.offsets, (Offsets{0, 8}));
}

TEST_F(TextStream, LinesAreDocuments) {
  const TokenDocuments documents = load({"a b\r\n\n \nc", "b\n"}, words_, {.unit = TextUnit::line});
  EXPECT_EQ(documents.ids, (Ids{kBos, 4, 5, kEos, kBos, 6, kEos, kBos, 5, kEos}));
  EXPECT_EQ(documents.offsets, (Offsets{0, 4, 7, 10}));
}

TEST_F(TextStream, ParagraphsAreDocuments) {
  const std::vector<std::string> contents{"\n\na\nb\n \t\nc\n\n\n", "a\r\nc"};
  const TextStreamOptions options{.unit = TextUnit::paragraph};
  EXPECT_EQ(texts_of(load(contents, words_, options), words_), (std::vector<std::string>{"a b", "c", "a c"}));
  EXPECT_EQ(texts_of(load(contents, bytes_, options), bytes_), (std::vector<std::string>{"a\nb", "c", "a\nc"}));
}

RC_GTEST_FIXTURE_PROP(TextStream, StreamsOfBytesDecodeToTheFile, ()) {
  const auto parts =
      *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>("a", "\n", "\r\n", "é", "🙂", " "));
  std::string text = "x";
  for (const std::string& part : parts) text += part;
  RC_ASSERT(texts_of(load({text}, bytes_), bytes_) == std::vector<std::string>{text});
}

TEST_F(TextStream, LargeFilesAreReadInPiecesWhateverTheThreads) {
  std::string text;
  int64_t lines = 0;
  for (; lines < 40'000; ++lines)
    text += "line " + std::to_string(lines) + (lines % 7 == 0 ? "\n\n" : "\n");  // 3 blocks
  const std::string tail(5 << 19, 'x');                                          // 3 pieces
  const Ids expected = bytes_.encode(text + tail);
  for (const int threads : {1, 3}) {
    const ThreadScope scope(threads);
    EXPECT_TRUE(load({text + tail}, bytes_).ids == expected);
    const TokenDocuments documents = load({text}, bytes_, {.unit = TextUnit::line});
    ASSERT_EQ(documents.documents(), lines);
    for (const int64_t i : {int64_t{0}, lines / 2, lines - 1})
      EXPECT_EQ(bytes_.decode(documents.document(i)), "line " + std::to_string(i));
  }
}

TEST_F(TextStream, NamesWhatItCannotRead) {
  EXPECT_TRUE(message_of<DataError>([&] { load({""}, bytes_); }).ends_with("0: there is no text"));
  EXPECT_THROW(load({" \n\n"}, words_, {.unit = TextUnit::paragraph}), DataError);
  EXPECT_THROW(load_text({}, bytes_), ConfigError);
  EXPECT_THROW(load_text({folder_ / "absent"}, bytes_), FileError);
  for (const auto unit : {TextUnit::stream, TextUnit::line, TextUnit::paragraph})
    EXPECT_TRUE(message_of<DataError>([&] {
                  load({"good\nbad\xFF\n"}, bytes_, {.unit = unit});
                }).ends_with("0:2: the line is not valid UTF-8"));
  std::string endless;
  for (int i = 0; i < 9; ++i) endless += std::string(1 << 20, 'x') + "\n";
  EXPECT_NE(message_of<DataError>([&] {
              load({endless}, bytes_, {.unit = TextUnit::paragraph});
            }).find("0:8: a paragraph of more than 8388608 bytes"),
            std::string::npos);
}

TEST(HoldOutLast, SplitsAStreamByItsIds) {
  const TokenDocuments stream{.ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, .offsets = {0, 10}};
  const auto [first, last] = hold_out_last(stream, 0.25);
  EXPECT_EQ(first.ids, (Ids{0, 1, 2, 3, 4, 5, 6}));  // floor(7.5)
  EXPECT_EQ(first.offsets, (Offsets{0, 7}));
  EXPECT_EQ(last.ids, (Ids{7, 8, 9}));
  EXPECT_EQ(last.offsets, (Offsets{0, 3}));
}

TEST(HoldOutLast, SplitsDocumentsWhole) {
  const TokenDocuments documents{.ids = {0, 1, 2, 3, 4, 5, 6}, .offsets = {0, 1, 3, 6, 7}};
  const auto [first, last] = hold_out_last(documents, 0.4);
  EXPECT_EQ(first.ids, (Ids{0, 1, 2}));
  EXPECT_EQ(first.offsets, (Offsets{0, 1, 3}));
  EXPECT_EQ(last.ids, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(last.offsets, (Offsets{0, 3, 4}));
}

TEST(HoldOutLast, RefusesPartsWithoutText) {
  const TokenDocuments stream{.ids = {0, 1, 2, 3, 4}, .offsets = {0, 5}};
  EXPECT_EQ(message_of<DataError>([&] { hold_out_last(stream, 0.1); }),
            "5 tokens are too few to hold out the last 0.1");
  const TokenDocuments documents{.ids = {0, 1, 2}, .offsets = {0, 1, 3}};
  EXPECT_THROW(hold_out_last(documents, 0.9), DataError);
  EXPECT_THROW(hold_out_last({}, 0.5), DataError);
  for (const double fraction : {0.0, 1.0, -0.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(hold_out_last(stream, fraction), ConfigError);
}

}  // namespace
}  // namespace attune
