#include "attune/text/character_tokenizer.h"
#include "attune/base/json_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "attune/base/file.h"
#include "attune/text/text_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

const std::vector<std::string> kAlphabet{
    std::string(1, '\0'), "\n", "\r", " ", "\"", "a", "\\", "\u0080", "é", "ß", "日", "\uFFFD", "🙂", "\U0010FFFF"};

std::string generate_text() {
  std::string text;
  for (const auto& character : *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kAlphabet)))
    text += character;
  return text;
}

std::string error_of_characters(const std::string& characters) {
  const std::string json = R"({"type": "characters", "characters": )" + characters + "}";
  return message_of<FileError>([&] { CharacterTokenizer::from_json(json, "tokenizer.json"); });
}

TEST(CharacterTokenizer, MapsCharactersToIdsAndBack) {
  const CharacterTokenizer tokenizer({"\n", "a", "ß", "🙂"});
  EXPECT_EQ(tokenizer.vocab_size(), 8);
  EXPECT_EQ(tokenizer.encode("a\na🙂ßb"), (Ids{5, 4, 5, 7, 6, 1}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.encode("a\xFF\xF0\x9F"
                             "a\U0010FFFF"),
            (Ids{5, 1, 1, 1, 5, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 5, 4, 1, 7, 3, 0}), "a\n<unk>🙂");
  EXPECT_EQ(tokenizer.piece(0), "<pad>");
  EXPECT_EQ(tokenizer.piece(6), "ß");
  EXPECT_THROW(tokenizer.piece(8), DataError);
  EXPECT_TRUE(tokenizer.keeps_line_ends());
}

TEST(CharacterTokenizer, TextCannotSmuggleInSpecials) {
  const CharacterTokenizer tokenizer({"<", ">", "s"});
  EXPECT_EQ(tokenizer.encode("<s>"), (Ids{4, 6, 5}));
}

RC_GTEST_PROP(CharacterTokenizer, DecodingUndoesEncoding, ()) {
  const std::string text = generate_text();
  RC_PRE(!text.empty());
  const CharacterTokenizer tokenizer = CharacterTokenizer::build_from_texts({text});
  RC_ASSERT(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST(CharacterTokenizer, BuildsFromFilesInTheOrderOfCodePoints) {
  const TemporaryFolder folder(memory_folder());
  write_file(folder / "1", "b🙂a\r\n");
  write_file(folder / "2", "é日b\uFFFF");
  const CharacterTokenizer tokenizer = CharacterTokenizer::build({folder / "1", folder / "2"});
  EXPECT_EQ(tokenizer.encode("\n\rabé日\uFFFF🙂"), (Ids{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(tokenizer.vocab_size(), 12);
  write_file(folder / "empty", "");
  EXPECT_THROW(CharacterTokenizer::build({folder / "empty"}), DataError);
  EXPECT_THROW(CharacterTokenizer::build_from_texts({"\xFF"}), DataError);
}

RC_GTEST_PROP(CharacterTokenizer, SavesAndLoadsTheSame, ()) {
  const CharacterTokenizer tokenizer = CharacterTokenizer::build_from_texts({"x" + generate_text()});
  const TemporaryFolder folder(memory_folder());
  tokenizer.save(folder / tokenizer.file_name());
  const auto loaded = load_tokenizer(folder / tokenizer.file_name());
  RC_ASSERT(loaded->vocab_size() == tokenizer.vocab_size());
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) RC_ASSERT(loaded->piece(id) == tokenizer.piece(id));
  const std::string text = generate_text();
  RC_ASSERT(loaded->encode(text) == tokenizer.encode(text));
}

TEST(CharacterTokenizer, RefusesHostileJson) {
  EXPECT_EQ(error_of_characters(R"(["a", "b", "a"])"), R"(tokenizer.json: character 2 ("a") is there a second time)");
  EXPECT_EQ(error_of_characters(R"(["a", "bc"])"),
            R"(tokenizer.json: character 1 ("bc") is not one code point in UTF-8)");
  EXPECT_EQ(error_of_characters(R"([""])"), R"(tokenizer.json: character 0 ("") is not one code point in UTF-8)");
  EXPECT_EQ(error_of_characters(R"([7])"), "tokenizer.json: character 0 is not a string");
  EXPECT_EQ(error_of_characters(R"({"a": "b"})"),
            R"(tokenizer.json: the field "characters" is missing or not an array)");
  EXPECT_EQ(error_of_characters("[[[]]]"), "tokenizer.json: JSON is nested more than 2 levels deep");
  EXPECT_EQ(error_of_characters(R"([], "pieces": [])"),
            R"(tokenizer.json: not a characters vocabulary: the field "pieces" is unknown)");
  EXPECT_EQ(error_of_characters(R"(["a"], "characters": ["b"])"), R"(tokenizer.json: JSON has key "characters" twice)");
  std::string many = "[\"a\"";
  for (int i = 0; i < 5 << 20; ++i) many += ",\"a\"";
  EXPECT_EQ(error_of_characters(many + "]"), "tokenizer.json: JSON has more than 4194320 values");
}

TEST(ByteTokenizer, MapsBytesToIdsAndBack) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.encode(std::string("\0a\nß\xFF", 6)), (Ids{4, 101, 14, 199, 163, 259}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 101, 14, 199, 163, 0, 3}), "a\nß");
  EXPECT_EQ(tokenizer.decode(Ids{101, 199, 101, 259, 1, 199}), "a\uFFFDa\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(tokenizer.decode(Ids{2, 101, 3, 0}, true), "<s>a</s><pad>") << "special tokens are asked for";
  EXPECT_EQ(tokenizer.piece(14), "<0x0A>");
  EXPECT_EQ(tokenizer.piece(3), "</s>");
  EXPECT_THROW(tokenizer.piece(260), DataError);
}

RC_GTEST_PROP(ByteTokenizer, DecodingUndoesEncoding, ()) {
  const ByteTokenizer tokenizer;
  const std::string text = generate_text();
  RC_ASSERT(tokenizer.decode(tokenizer.encode(text)) == text);
}

RC_GTEST_PROP(ByteTokenizer, DecodesAnythingToValidText, ()) {
  const ByteTokenizer tokenizer;
  const auto ids = *rc::gen::container<Ids>(rc::gen::inRange(0, 260));
  RC_ASSERT(valid_utf8(tokenizer.decode(ids)));
}

TEST(LoadTokenizer, DispatchesOnTheType) {
  const TemporaryFolder folder(memory_folder());
  ByteTokenizer().save(folder / "tokenizer.json");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->vocab_size(), 260);
  const auto error_of = [&](const std::string& json) {
    write_file(folder / "v.json", json);
    const std::string message = message_of<FileError>([&] { load_tokenizer(folder / "v.json"); });
    return message.substr(message.find("v.json"));
  };
  EXPECT_EQ(error_of(R"({"type": "bytes", "characters": []})"),
            R"(v.json: not a bytes vocabulary: the field "characters" is unknown)");
  const auto refused = [](const std::string& found) {
    return "v.json: not a tokenizer: " + found +
           R"(; expected the object of a Hugging Face tokenizer.json, or one with )"
           R"("type": "whitespace", "characters" or "bytes")";
  };
  EXPECT_EQ(error_of(R"({"type": "BPE"})"), refused(R"("type" is "BPE")"));
  EXPECT_EQ(error_of("\xEF\xBB\xBF"
                     R"({"type": "BPE"})"),
            refused(R"("type" is "BPE")"))
      << "a byte order mark";
  for (const char* json : {"[]", R"( ["type"])", "5", "null"}) EXPECT_EQ(error_of(json), refused("is not an object"));
  for (const char* json : {"{}", R"({"type": 1})", R"({"type": {"type": "bytes"}})"})
    EXPECT_EQ(error_of(json), refused(R"(has no "type")")) << json;
  EXPECT_EQ(error_of(std::string(1 << 20, '[')), "v.json: JSON is nested more than 2 levels deep");
  EXPECT_EQ(error_of("{"), "v.json: is not valid JSON at byte 2");
}

}  // namespace
}  // namespace attune
