#include "attune/text/whitespace_tokenizer.h"
#include "attune/base/json_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attune/base/file.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/vocabulary_json.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

std::vector<std::string> pieces_of(const Tokenizer& tokenizer) {
  std::vector<std::string> pieces;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

std::string error_of_json(const std::string& json) {
  return message_of<FileError>([&] { WhitespaceTokenizer::from_json(json, "tokenizer.json"); });
}

TEST(WhitespaceTokenizer, MapsWordsToIdsAndBack) {
  const WhitespaceTokenizer tokenizer({"der", "Straßen", "🙂", "is@@"});
  EXPECT_EQ(tokenizer.vocab_size(), 8);
  EXPECT_EQ(tokenizer.encode("  der 🙂\tStraßen  unknown "), (Ids{4, 6, 5, 1}));
  EXPECT_EQ(tokenizer.encode(" \t "), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{2, 4, 6, 5, 1, 7, 3, 0, 0}), "der 🙂 Straßen <unk> is@@");
  EXPECT_EQ(tokenizer.pad_id(), 0);
  EXPECT_EQ(tokenizer.unk_id(), 1);
  EXPECT_EQ(tokenizer.bos_id(), 2);
  EXPECT_EQ(tokenizer.eos_id(), 3);
}

TEST(WhitespaceTokenizer, LineEndsSeparateWords) {
  const WhitespaceTokenizer tokenizer({"good", "film"});
  EXPECT_EQ(tokenizer.encode("good\nfilm\r\ngood\n"), (Ids{4, 5, 4})) << "as a field of CSV or JSON may have them";
}

TEST(WhitespaceTokenizer, TextCannotSmuggleInSpecials) {
  const WhitespaceTokenizer tokenizer({"a"});
  EXPECT_EQ(tokenizer.encode("<pad> <s> </s> <unk> a"), (Ids{1, 1, 1, 1, 4}));
}

TEST(WhitespaceTokenizer, JoinsSubwordsAtTheMarker) {
  const WhitespaceTokenizer tokenizer({"ab@@", "cd", "@@"}, "@@");
  EXPECT_EQ(tokenizer.decode(Ids{4, 5, 5}), "abcd cd");
  EXPECT_EQ(tokenizer.decode(Ids{5, 4}), "cd ab");
  EXPECT_EQ(tokenizer.decode(Ids{4, 4, 3, 5, 6, 5}), "ababcd cd");
}

// As references are joined that translations are compared with.
TEST(WhitespaceTokenizer, TextIsJoinedAsItsTokensAre) {
  const WhitespaceTokenizer tokenizer({"ab@@", "cd", "@@"}, "@@"), plain({"ab@@", "cd"});
  EXPECT_EQ(joined_text(tokenizer, "ab@@ cd new@@ est  cd\tab@@"), "abcd newest cd ab") << "also unknown words";
  for (const char* text : {"ab@@ cd cd", "cd ab@@", "ab@@ ab@@ cd @@ cd", ""})
    EXPECT_EQ(joined_text(tokenizer, text), tokenizer.decode(tokenizer.encode(text))) << text;
  EXPECT_EQ(joined_text(plain, "ab@@  cd"), "ab@@  cd");
  EXPECT_EQ(joined_text(ByteTokenizer(), "ab@@ cd"), "ab@@ cd");
}

TEST(WhitespaceTokenizer, NamesAnIdOutsideTheVocabulary) {
  const WhitespaceTokenizer tokenizer({"a"});
  EXPECT_EQ(message_of<DataError>([&] {
              tokenizer.decode(Ids{4, 9000});
            }),
            "token id 9000 is outside the vocabulary of 5");
  EXPECT_EQ(message_of<DataError>([&] { tokenizer.piece(-1); }), "token id -1 is outside the vocabulary of 5");
}

TEST(WhitespaceTokenizer, BuildsByFrequencyThenAlphabet) {
  const TemporaryFolder folder(memory_folder());
  write_file(folder.path() / "1", "b a c b\nb <s> d\n");
  write_file(folder.path() / "2", "a é d\n");
  const std::vector<std::filesystem::path> files{folder.path() / "1", folder.path() / "2"};
  const std::vector<std::string> all{"<pad>", "<unk>", "<s>", "</s>", "b", "a", "d", "c", "é"};
  EXPECT_EQ(pieces_of(WhitespaceTokenizer::build(files)), all);
  EXPECT_EQ(pieces_of(WhitespaceTokenizer::build(files, {.min_count = 2})), std::vector(all.begin(), all.begin() + 7));
  EXPECT_EQ(pieces_of(WhitespaceTokenizer::build(files, {.max_size = 6})), std::vector(all.begin(), all.begin() + 6));
  EXPECT_THROW(WhitespaceTokenizer::build(files, {.min_count = 4}), DataError);
  EXPECT_THROW(WhitespaceTokenizer::build(files, {.min_count = 0}), ConfigError);
  EXPECT_THROW(WhitespaceTokenizer::build(files, {.max_size = 4}), ConfigError);
}

RC_GTEST_PROP(WhitespaceTokenizer, SavesAndLoadsTheSame, ()) {
  const auto lengths = *rc::gen::unique<std::vector<int>>(rc::gen::inRange(1, 300));
  std::vector<std::string> words;
  for (const int n : lengths) words.push_back("\"ü\\" + std::string(static_cast<size_t>(n), '@'));
  const std::string marker = *rc::gen::element<std::string>("", "@@", "▁");
  const WhitespaceTokenizer tokenizer(words, marker);
  const TemporaryFolder folder(memory_folder());
  tokenizer.save(folder.path() / tokenizer.file_name());
  const auto loaded = load_tokenizer(folder.path() / tokenizer.file_name());
  RC_ASSERT(pieces_of(*loaded) == pieces_of(tokenizer));
  Ids ids(static_cast<size_t>(tokenizer.vocab_size()));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  RC_ASSERT(loaded->decode(ids) == tokenizer.decode(ids));
  const Ids words_only(ids.begin() + 4, ids.end());
  if (marker != "@@") RC_ASSERT(loaded->encode(tokenizer.decode(words_only)) == words_only);
}

TEST(WhitespaceTokenizer, RefusesHostileJson) {
  const std::string head = R"({"type": "whitespace", "pieces": ["<pad>", "<unk>", "<s>", "</s>")";
  EXPECT_NO_THROW(WhitespaceTokenizer::from_json(head + "]}", "tokenizer.json"));
  EXPECT_EQ(error_of_json(head + R"(, "a", "a"]})"), R"(tokenizer.json: piece 5 ("a") is there a second time)");
  EXPECT_EQ(error_of_json(head + R"(, "<s>"]})"), R"(tokenizer.json: piece 4 ("<s>") is there a second time)");
  EXPECT_EQ(error_of_json(head + R"(, 7]})"), "tokenizer.json: piece 4 is not a string");
  EXPECT_EQ(error_of_json(head + R"(, "a b"]})"), "tokenizer.json: piece 4 is empty or has white space in it");
  EXPECT_EQ(error_of_json(head + R"(, ""]})"), "tokenizer.json: piece 4 is empty or has white space in it");
  EXPECT_EQ(error_of_json(head + R"(], "subword_marker": 1})"),
            R"(tokenizer.json: the field "subword_marker" is not a string)");
  EXPECT_EQ(error_of_json(R"({"type": "whitespace", "pieces": ["<pad>", "<s>"]})"),
            R"(tokenizer.json: piece 1 is "<s>", expected "<unk>")");
  EXPECT_EQ(error_of_json(R"({"type": "whitespace", "pieces": ["<pad>"]})"),
            "tokenizer.json: has 1 pieces, expected 4 or more");
  EXPECT_EQ(error_of_json(R"({"type": "whitespace", "pieces": {}})"),
            R"(tokenizer.json: the field "pieces" is missing or not an array)");
  EXPECT_EQ(error_of_json(R"({"type": "BPE"})"), R"(tokenizer.json: the field "type" is "BPE", expected "whitespace")");
  EXPECT_EQ(error_of_json(R"({"pieces": []})"),
            R"(tokenizer.json: not a whitespace vocabulary: the field "type" is missing)");
  EXPECT_EQ(error_of_json(R"({"version": "1.0"})"),
            R"(tokenizer.json: not a whitespace vocabulary: the field "version" is unknown)");
  EXPECT_EQ(error_of_json("[]"), "tokenizer.json: not a whitespace vocabulary: not an object");
  EXPECT_EQ(error_of_json("{\"type\": \"\xFF\"}"), "tokenizer.json: is not valid JSON at byte 11");
  EXPECT_EQ(error_of_json(head), "tokenizer.json: is not valid JSON at byte 66");
  EXPECT_EQ(error_of_json(""), "tokenizer.json: is not valid JSON at byte 1");
  EXPECT_TRUE(error_of_json(R"({"type": 1e999})").starts_with("tokenizer.json: is not valid JSON: "));
}

// Otherwise the error would come only when the trained model is loaded.
TEST(WhitespaceTokenizer, WritesNoFileThatItCannotRead) {
  const TemporaryFolder folder(memory_folder());
  std::vector<std::string> words;
  for (int i = 0; i < 65; ++i) words.push_back(std::to_string(i) + std::string(1 << 20, 'a'));
  const std::string message =
      message_of<DataError>([&] { WhitespaceTokenizer(words).save(folder / "vocabulary.json"); });
  EXPECT_TRUE(message.ends_with("at most 67108864 are accepted; set max_size (data.vocab_size, --vocab-size)"))
      << message;
  EXPECT_FALSE(is_there(folder / "vocabulary.json"));
  std::string largest = R"({"type": "whitespace", "subword_marker": "@@", "pieces": [0)";
  for (size_t i = 1; i < kMaxPieces; ++i) largest += ",0";
  EXPECT_EQ(vocabulary_type(largest + "]}", "vocabulary.json"), "whitespace");
}

TEST(WhitespaceTokenizer, RefusesHugeOrDeepJsonBeforeItIsBuilt) {
  EXPECT_EQ(error_of_json(std::string(20 << 20, '[')), "tokenizer.json: JSON is nested more than 2 levels deep");
  std::string many = "[0";
  for (int i = 0; i < 5 << 20; ++i) many += ",0";
  EXPECT_EQ(error_of_json(many + "]"), "tokenizer.json: JSON has more than 4194320 values");
  EXPECT_EQ(error_of_json(std::string(65 << 20, ' ')),
            "tokenizer.json: has 68157440 bytes, at most 67108864 are accepted here");
}

}  // namespace
}  // namespace attune
