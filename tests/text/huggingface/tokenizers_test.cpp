// What PyPI's `tokenizers` makes of texts, with small tokenizers of every kind. bench/compare/tokenizer_data.py wrote
// the files.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "attune/base/file.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/tokenizer.h"
#include "attune/text/tokenizer_files.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

std::filesystem::path data() {
  return std::filesystem::path(source_dir()) / "tests/text/data";
}

TEST(HuggingFaceTokenizers, AreAsTheReference) {
  const json expected = json::parse(read_file(data() / "expected.json"));
  ASSERT_GE(expected.size(), 10u);
  for (const auto& [name, samples] : expected.items()) {
    const auto tokenizer = load_tokenizer(data() / (name + ".json"));
    for (size_t i = 0; i < samples.size(); ++i) {
      SCOPED_TRACE(name + ": " + samples[i]["text"].dump());
      const auto text = samples[i]["text"].get<std::string>();
      const auto other = samples[(i + 1) % samples.size()]["text"].get<std::string>();
      const auto ids = samples[i]["ids"].get<Ids>();
      EXPECT_EQ(tokenizer->encode(text), ids);
      EXPECT_EQ(tokenizer->encode_for_model(text).ids, samples[i]["for_model"].get<Ids>());
      const Encoding pair = tokenizer->encode_pair(text, other);
      EXPECT_EQ(pair.ids, samples[i]["pair"].get<Ids>());
      EXPECT_EQ(pair.type_ids, samples[i]["pair_types"].get<Ids>());
      EXPECT_EQ(tokenizer->decode(ids), samples[i]["decoded"].get<std::string>());
      EXPECT_EQ(tokenizer->decode(ids, true), samples[i]["decoded_whole"].get<std::string>());
    }
  }
}

RC_GTEST_PROP(HuggingFaceTokenizers, ByteLevelGivesTheTextBack, ()) {
  static const auto tokenizer = load_tokenizer(data() / "gpt2.json");
  std::string text;
  for (const char32_t c : *rc::gen::container<std::u32string>(rc::gen::inRange<char32_t>(1, 0xD800))) {
    if (c >= 0x800) text.push_back(static_cast<char>(0xE0 | c >> 12));
    if (c >= 0x80) text.push_back(static_cast<char>(c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6));
    text.push_back(static_cast<char>(c >= 0x80 ? 0x80 | (c & 0x3F) : c));
  }
  RC_PRE(text.find('<') == std::string::npos);  // added tokens take white space with them
  RC_ASSERT(tokenizer->decode(tokenizer->encode(text), true) == text);
}

TEST(HuggingFaceTokenizers, OwnVocabulariesAreToldApart) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", R"({"type": "bytes"})");
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "bytes");
  write_file(folder / "tokenizer.json", read_file(data() / "gpt2.json"));
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "Hugging Face");
}

TEST(Truncation, LongestFirstSharesTheRest) {
  Ids first(10, 1), second(4, 2);
  truncate({.max_length = 11}, 3, first, &second);
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(second.size(), 4u);
  Ids only{1, 2, 3, 4};
  truncate({.max_length = 3, .from_left = true}, 1, only, nullptr);
  EXPECT_EQ(only, (Ids{3, 4}));
}

TEST(Padding, RoundsLengthsUp) {
  std::vector<Encoding> batch{{{1, 2, 3}, {0, 0, 0}}, {{4}, {0}}};
  pad({.multiple_of = 4, .on_left = true, .id = 9}, batch);
  EXPECT_EQ(batch[0].ids, (Ids{9, 1, 2, 3}));
  EXPECT_EQ(batch[1].ids, (Ids{9, 9, 9, 4}));
}

TEST(HuggingFaceTokenizers, CleanUpIsAsTheConfigurationSays) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json",
             R"({"model": {"type": "WordLevel", "vocab": {"it": 0, "'": 1, "s": 2, ".": 3}, "unk_token": "it"}})");
  const Ids ids{0, 1, 2, 3};
  EXPECT_EQ(load_tokenizer(folder.path())->decode(ids), "it ' s .");
  write_file(folder / "tokenizer_config.json", R"({"clean_up_tokenization_spaces": true})");
  EXPECT_EQ(load_tokenizer(folder.path())->decode(ids), "it's.");
}

// {"type": "BPE"} of transformers is never cleaned up.
TEST(HuggingFaceTokenizers, CleanUpLeavesBpeAlone) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", read_file(data() / "gpt2.json"));
  write_file(folder / "tokenizer_config.json", R"({"clean_up_tokenization_spaces": true})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a , b .")), "a , b .");
}

std::string error_of(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", bytes);
  const std::string message = message_of<FileError>([&] { load_tokenizer(folder / "tokenizer.json"); });
  return message.substr(message.find("tokenizer.json"));
}

TEST(HuggingFaceTokenizers, ErrorsNameTheField) {
  EXPECT_EQ(error_of(R"({"version": "1.0"})"), "tokenizer.json: model: is missing");
  EXPECT_EQ(error_of(std::string("{\"version\": \"1.0\"}\0x", 20)), "tokenizer.json: is not valid JSON at byte 19");
  EXPECT_EQ(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
            "tokenizer.json: model.merges, entry 0: token \"b\" is not in the vocabulary");
  EXPECT_EQ(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}})"),
            "tokenizer.json: model.vocab: id 0 belongs to \"a\" and to \"b\"");
  const std::string model = R"("model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})";
  EXPECT_EQ(error_of(R"({"pre_tokenizer": {"type": "Other"}, )" + model + "}"),
            "tokenizer.json: pre_tokenizer.type: is \"Other\", expected a pre-tokenizer that is known here");
  EXPECT_EQ(error_of(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, null]}, )" + model + "}"),
            "tokenizer.json: normalizer.normalizers[1]: is null, expected an object");
  EXPECT_EQ(error_of(R"({"model": {"type": "WordLevel", "vocab": {"a": -1}}})"),
            "tokenizer.json: vocabulary, entry 1: the id is not a number from 0 to 8388607");
  EXPECT_EQ(
      error_of(R"({"post_processor": {"type": "BertProcessing", "sep": ["a", 0], "cls": ["b", 1]}, )" + model + "}"),
      "tokenizer.json: post_processor: token 1 is not in the vocabulary, which has 1");
}

TEST(HuggingFaceTokenizers, AKeyThatComesTwiceIsNamed) {
  EXPECT_EQ(error_of(R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "a": 2}}})"),
            "tokenizer.json: model.vocab: the vocabulary has \"a\" twice");
  EXPECT_EQ(error_of(R"({"model": {"type": "WordLevel", "vocab": {}, "vocab": {"a": 0}}})"),
            "tokenizer.json: \"model.vocab\" is there twice");
  EXPECT_EQ(error_of(R"({"version": "1", "model": {"type": "BPE", "type": "WordLevel"}})"),
            "tokenizer.json: \"model.type\" is there twice");
}

// A score that no number is as small as is 0, also one whose exponent is as small as exponents can be written.
TEST(HuggingFaceTokenizers, AVerySmallScoreIsZero) {
  for (const char* score : {"1e-400", "1.5e-2147483648", "-1e-99999999999"}) {
    const TemporaryFolder folder;
    write_file(folder / "tokenizer.json",
               R"({"version": "1", "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", )" +
                   std::string(score) + "]]}}");
    EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->encode("aa"), (Ids{1, 1})) << score;
  }
}

Ids ids_of(const std::string& file, const char* text) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", file);
  return load_tokenizer(folder.path())->encode(text);
}

// The next two as tokenizers 0.23.3 has it.
TEST(HuggingFaceTokenizers, AnEmptyMatchCutsWhatIsContiguous) {
  const json model = {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}, {"12", 1}, {"345", 2}}}};
  const json split = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?=\\d{3}$)"}}}, {"behavior", "Contiguous"}, {"invert", false}};
  EXPECT_EQ(ids_of(json{{"model", model}, {"pre_tokenizer", split}}.dump(), "12345"), (Ids{1, 2}));
}

TEST(HuggingFaceTokenizers, ALongReplacementAtTheStartTakesTheSpaceInFront) {
  const auto file = [](const char* from, const char* to) {
    const json normalizer = {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
    const json pre_tokenizer = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}};
    const json vocabulary = {{"▁", 0}, {"q", 1}, {"h", 2}, {"i", 3}, {"x", 4}};
    const json model = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}};
    return json{{"normalizer", normalizer}, {"pre_tokenizer", pre_tokenizer}, {"model", model}}.dump();
  };
  EXPECT_EQ(ids_of(file("``", "q"), "hi"), (Ids{0, 2, 3}));
  EXPECT_EQ(ids_of(file("``", "q"), "``hi"), (Ids{1, 2, 3}));
  EXPECT_EQ(ids_of(file("``", "xq"), "``hi"), (Ids{4, 1, 2, 3}));
  EXPECT_EQ(ids_of(file("h", "xq"), "hi"), (Ids{0, 4, 1, 3}));
}

json small_model() {
  return {{"type", "WordLevel"}, {"unk_token", "?"}, {"vocab", {{"?", 0}, {"a", 1}}}};
}

// A hostile file: 2 KiB of steps that would write 2^41 bytes for one character.
TEST(HuggingFaceTokenizers, StepsThatMultiplyATextAreAnError) {
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(256, 'a')}};
  const json file = {{"model", small_model()},
                     {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::vector<json>(40, bytes)}}},
                     {"decoder", {{"type", "Sequence"}, {"decoders", std::vector<json>(5, replace)}}}};
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", file.dump());
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(message_of<DataError>([&] { tokenizer->encode("\u00e9"); }),
            "pre-tokenization turns a text of 2 bytes into one of 8192 bytes");
  EXPECT_EQ(message_of<DataError>([&] { tokenizer->decode(Ids{1}); }),
            "decoding turns a text of 2 bytes into one of 65537 bytes");
}

TEST(HuggingFaceTokenizers, AStepAloneThatMultipliesATextIsAnError) {
  const json replace = {{"type", "Replace"}, {"pattern", {{"Regex", ""}}}, {"content", std::string(256, 'a')}};
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", json{{"model", small_model()}, {"normalizer", replace}}.dump());
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_NO_THROW(tokenizer->encode("a"));
  EXPECT_TRUE(message_of<DataError>([&] {
                tokenizer->encode(std::string(1000, 'a'));
              }).starts_with("normalization turns a text of 1000 bytes into one of 25"));
}

// One short text would become gigabytes.
TEST(HuggingFaceTokenizers, PaddingIsBounded) {
  const auto padded = [](const json& padding) { return json{{"model", small_model()}, {"padding", padding}}.dump(); };
  const std::string bounds = "a number from 0 to 1048576";
  EXPECT_NE(error_of(padded({{"strategy", {{"Fixed", 1 << 30}}}})).find(bounds), std::string::npos);
  EXPECT_NE(error_of(padded({{"strategy", "BatchLongest"}, {"pad_to_multiple_of", 1 << 30}})).find(bounds),
            std::string::npos);
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", padded({{"strategy", {{"Fixed", 1 << 20}}}}));
  EXPECT_EQ(load_tokenizer(folder.path())->padding()->length, 1 << 20);
}

TEST(HuggingFaceTokenizers, StepsOfSequencesWithinSequencesCount) {
  const json step = {{"type", "Whitespace"}};
  const json inner = {{"type", "Sequence"}, {"pretokenizers", std::vector<json>(8, step)}};
  const json outer = {{"type", "Sequence"}, {"pretokenizers", std::vector<json>(8, inner)}};
  EXPECT_EQ(error_of(json{{"model", small_model()}, {"pre_tokenizer", outer}}.dump()),
            "tokenizer.json: pre_tokenizer: has more than 64 steps, or is 8 levels deep");
}

// The table: four bytes with the size of its trie, a trie of one unit, and 259 times x.
TEST(HuggingFaceTokenizers, ALongReplacementInATableIsRefused) {
  std::string table = "BAAAAAAAAAB4";
  for (int i = 0; i < 86; ++i) table += "eHh4";
  const json normalizer = {{"type", "Precompiled"}, {"precompiled_charsmap", table}};
  EXPECT_EQ(
      error_of(json{{"model", small_model()}, {"normalizer", normalizer}}.dump()),
      "tokenizer.json: normalizer.precompiled_charsmap: has a replacement of 259 bytes, at most 256 are accepted");
}

// At each place of a text a model would read as much of it as its longest token has.
TEST(HuggingFaceTokenizers, LongTokensOfUnigramAndWordPieceAreRefused) {
  const auto unigram = [](size_t bytes) {
    const json vocab = json::array({json::array({"?", -9.5}), json::array({std::string(bytes, 'a'), -1.5})});
    return json{{"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
  };
  const auto word_piece = [](size_t bytes) {
    const json vocab = {{"[UNK]", 0}, {std::string(bytes, 'a'), 1}};
    return json{{"model", {{"type", "WordPiece"}, {"max_input_chars_per_word", 1 << 20}, {"vocab", vocab}}}};
  };
  const std::string message = "tokenizer.json: model.vocab: token 1 has 1025 bytes, at most 1024 are accepted";
  EXPECT_EQ(error_of(unigram(1025).dump()), message);
  EXPECT_EQ(error_of(word_piece(1025).dump()), message);
  const TemporaryFolder folder;
  for (const json& file : {unigram(1024), word_piece(1024)}) {
    write_file(folder / "tokenizer.json", file.dump());
    EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->encode(std::string(1024, 'a')), (Ids{1}));
  }
  write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n" + std::string(1025, 'a') + "\n");
  EXPECT_NE(message_of<FileError>([&] { load_tokenizer(folder / "vocab.txt"); }).find("token 4 has 1025 bytes"),
            std::string::npos);
}

TEST(HuggingFaceTokenizers, AddedTokensThatGrowWhenTheyAreNormalizedAreRefused) {
  const json normalizer = {{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", std::string(256, 'y')}};
  const json file = {{"added_tokens", json::array({json{{"content", std::string(1000, 'x')}}})},
                     {"model", small_model()},
                     {"normalizer", normalizer}};
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", file.dump());
  EXPECT_EQ(message_of<DataError>([&] { load_tokenizer(folder.path()); }),
            "normalization turns added tokens of 1000 bytes into 256000 bytes");
}

// Each space takes the white space on one side of it, which is other spaces that are tokens.
TEST(HuggingFaceTokenizers, ManyAddedTokensOfWhiteSpaceTakeLinearTime) {
  for (const char* side : {"lstrip", "rstrip"}) {
    const json space = {{"content", " "}, {side, true}, {"normalized", false}};
    const json file = {{"added_tokens", json::array({space})}, {"model", small_model()}};
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(ids_of(file.dump(), std::string(1 << 18, ' ').c_str()).size(), size_t{1} << 18) << side;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "quadratic time is a minute";
  }
}

// As tokenizers 0.23.3 has it.
TEST(HuggingFaceTokenizers, AnAddedTokenInSpacesThatAnotherTookIsThere) {
  const auto added = [](int id, const char* content, bool rstrip) {
    return json{{"id", id}, {"content", content}, {"rstrip", rstrip}, {"normalized", false}};
  };
  const json file = {{"added_tokens", {added(2, "<e>", true), added(3, "\n\n", false), added(4, "\t", true)}},
                     {"pre_tokenizer", {{"type", "Whitespace"}}},
                     {"model", small_model()}};
  EXPECT_EQ(ids_of(file.dump(), "<e>\n\na"), (Ids{2, 3, 1}));
  EXPECT_EQ(ids_of(file.dump(), "<e> \n\n a"), (Ids{2, 3, 1}));
  EXPECT_EQ(ids_of(file.dump(), "<e>\t  \t a"), (Ids{2, 4, 4, 1}));
}

json split_at_many_steps() {
  return {{"type", "Split"}, {"pattern", {{"Regex", "(?:a|aa)+[bc]"}}}, {"behavior", "Isolated"}, {"invert", false}};
}

// One word takes some 300,000 steps, and each is a text of its own for the pattern.
TEST(HuggingFaceTokenizers, ManyStepsInManyWordsAreAnError) {
  const json steps = {{{"type", "WhitespaceSplit"}}, split_at_many_steps()};
  const json file = {{"added_tokens", {{{"id", 2}, {"content", "<e>"}, {"normalized", false}}}},
                     {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
                     {"model", small_model()}};
  std::string text;
  for (int i = 0; i < 4096; ++i) text += std::string(22, 'a') + (i % 2 == 0 ? " " : "<e>");
  EXPECT_NE(message_of<DataError>([&] { ids_of(file.dump(), text.c_str()); }).find("cannot search a text of 22 bytes"),
            std::string::npos);
}

TEST(HuggingFaceTokenizers, ManyStepsInManyAddedTokensAreAnError) {
  json added = json::array();
  for (int i = 0; i < 4096; ++i)
    added.push_back({{"id", 2 + i}, {"content", std::string(22, 'a') + std::to_string(i)}, {"normalized", true}});
  json normalizer = split_at_many_steps();
  normalizer["type"] = "Replace";
  normalizer["content"] = "";
  const json file = {{"added_tokens", added}, {"normalizer", normalizer}, {"model", small_model()}};
  EXPECT_NE(message_of<DataError>([&] { ids_of(file.dump(), "a"); }).find("cannot search a text of"),
            std::string::npos);
}

// As tokenizers 0.23.3 has it: both are a `char` there.
TEST(HuggingFaceTokenizers, DecodersTakeOneCharacter) {
  const auto error = [](const json& decoder) {
    return error_of(json{{"model", small_model()}, {"decoder", decoder}}.dump());
  };
  EXPECT_EQ(error({{"type", "Strip"}, {"content", ""}, {"start", INT32_MAX}, {"stop", INT32_MAX}}),
            "tokenizer.json: decoder.content: is \"\", expected one character");
  EXPECT_EQ(error({{"type", "Metaspace"}, {"replacement", "ab"}}),
            "tokenizer.json: decoder.replacement: is \"ab\", expected one character");
}

// The bytes of U+2581 are â, ĸ and ģ there; a token that is U+2581 itself is never found.
TEST(HuggingFaceTokenizers, ByteLevelMergesReachIntoAMetaspace) {
  const json vocabulary = {{"a", 0}, {"â", 1}, {"ĸ", 2}, {"ģ", 3}, {"aâ", 4}, {"▁", 5}};
  const json model = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a â"}}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  EXPECT_EQ(ids_of(json{{"model", model}, {"pre_tokenizer", bytes}}.dump(), "a▁a"), (Ids{4, 2, 3, 0}));
}

// The next two as transformers 5.23 has it.
TEST(Folder, TokensThatAFolderAddsFollowTheVocabulary) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\n]\ne\n##1\nx\ne1\n");
  const json added = {{"0", {{"content", "[PAD]"}, {"special", true}}},
                      {"11", {{"content", "[E1]"}, {"normalized", false}}},
                      {"12", {{"content", "Foo"}, {"normalized", true}, {"rstrip", true}}}};
  write_file(folder / "tokenizer_config.json", json{{"added_tokens_decoder", added}}.dump());
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 13);
  EXPECT_EQ(tokenizer->encode("[E1] x[E1]e1 foo e1"), (Ids{11, 9, 11, 10, 12, 10}));
  EXPECT_EQ(tokenizer->token_id("Foo"), 12);
  EXPECT_TRUE(tokenizer->is_special_token(0));
}

TEST(Folder, TokensOfAddedTokensJsonAreThere) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\n]\ne\n##1\nx\ne1\n");
  write_file(folder / "tokenizer_config.json", R"({"additional_special_tokens": ["[E2]"]})");
  write_file(folder / "added_tokens.json", R"({"[E2]": 12, "[E1]": 11})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->encode("[e1] x[E2]"), (Ids{11, 9, 12})) << "[E1] is normalized";
  EXPECT_FALSE(tokenizer->is_special_token(11));
  EXPECT_TRUE(tokenizer->is_special_token(12));
  const TemporaryFolder copy;
  tokenizer->save(copy / "vocab.txt");
  EXPECT_EQ(load_tokenizer(copy.path())->encode("[E1]"), Ids{11});
  write_file(folder / "added_tokens.json", R"({"[E1]": "11"})");
  EXPECT_NE(message_of<FileError>([&] { load_tokenizer(folder.path()); }).find("the id of \"[E1]\""),
            std::string::npos);
}

TEST(Folder, APointerOfGitLfsIsNamed) {
  const TemporaryFolder folder;
  const std::string expected = ": is a pointer of Git LFS, not the file itself: run \"git lfs pull\"";
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n";
  write_file(folder / "tokenizer.json", pointer);
  const auto message = [&] { return message_of<FileError>([&] { load_tokenizers(folder.path()); }); };
  EXPECT_EQ(message(), (folder / "tokenizer.json").string() + expected);
  std::filesystem::remove(folder / "tokenizer.json");
  write_file(folder / "vocab.json", pointer);
  write_file(folder / "merges.txt", "#version: 0.2\n");
  EXPECT_EQ(message(), (folder / "vocab.json").string() + expected);
}

TEST(Folder, VocabJsonNeedsMergesOrPieces) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2})");
  const auto message = [&] { return message_of<FileError>([&] { load_tokenizers(folder.path()); }); };
  EXPECT_EQ(message(), (folder / "vocab.json").string() +
                           ": needs merges.txt beside it (BPE), or source.spm and target.spm (Marian); none is there");
  write_file(folder / "target.spm", "");
  EXPECT_EQ(message(), "cannot open " + (folder / "source.spm").string() + ": No such file or directory");
}

// OPT has RoBERTa's tokens, and GPT-2's class. As transformers 5.24 has it.
TEST(Folder, OptBeginsWithBosAsItsConfigurationSays) {
  const TemporaryFolder folder;
  write_file(folder / "vocab.json",
             R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "H": 4, "e": 5, "Ġ": 6, "He": 7})");
  write_file(folder / "merges.txt", "#version: 0.2\nH e\n");
  const auto load = [&](const json& more) {
    json config = {{"unk_token", "</s>"}, {"bos_token", "</s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}};
    config.update(more);
    write_file(folder / "tokenizer_config.json", config.dump());
    return load_tokenizers(folder.path()).source;
  };
  for (const json& more :
       {json{{"add_bos_token", true}}, json{{"add_bos_token", true}, {"tokenizer_class", "GPT2Tokenizer"}}}) {
    const auto opt = load(more);
    EXPECT_EQ(opt->encode_for_model("He e<pad></s>").ids, (Ids{2, 7, 6, 5, 1, 2}));
    EXPECT_EQ(opt->encode_pair("He", "e").ids, (Ids{2, 7, 2, 5}));
  }
  EXPECT_EQ(load({{"tokenizer_class", "GPT2Tokenizer"}})->encode_for_model("He").ids, Ids{7});
  const json roberta = {{"bos_token", "<s>"}, {"unk_token", "<unk>"}, {"tokenizer_class", "RobertaTokenizer"}};
  EXPECT_EQ(load(roberta)->encode_for_model("He").ids, (Ids{0, 7, 2}));
}

// The pieces are SentencePiece's, the ids those of vocab.json; </s> comes after a text, a language code before it.
TEST(MarianTokenizer, TakesItsIdsFromTheVocabulary) {
  const TemporaryFolder folder;
  const auto pieces = train_sentence_piece({"the old dog sleeps", "the cat sees the old dog"}, {.vocab_size = 19});
  pieces->save(folder / "source.spm");
  pieces->save(folder / "target.spm");
  nlohmann::ordered_json vocabulary = {{"</s>", 0}, {"<unk>", 1}, {">>de<<", 2}};
  int32_t next = 3;
  for (int32_t id = 18; id > 4; --id) vocabulary[pieces->piece(id)] = next++;  // piece 4 is not there
  vocabulary["<pad>"] = next;
  write_file(folder / "vocab.json", vocabulary.dump());
  const auto tokenizer = load_tokenizers(folder.path()).source;
  EXPECT_EQ(tokenizer->eos_id(), 0);
  EXPECT_EQ(tokenizer->pad_id(), next);
  const std::string text = "the old cat sees";
  std::vector<int32_t> expected;
  for (const int32_t id : pieces->encode(text)) expected.push_back(id == 4 ? 1 : 3 + 18 - id);
  EXPECT_EQ(tokenizer->encode(text), expected);
  expected.push_back(0);
  EXPECT_EQ(tokenizer->encode_for_model(text).ids, expected);
  expected.insert(expected.begin(), 2);
  EXPECT_EQ(tokenizer->encode_for_model(">>de<<" + text).ids, expected);
  EXPECT_EQ(tokenizer->encode(">>de<<" + text + " </s>"), expected) << "a special token in a text";

  // As transformers 5.23 has it.
  const json added = {{std::to_string(next + 1), {{"content", "[E1]"}, {"special", true}}}};
  write_file(folder / "tokenizer_config.json", json{{"added_tokens_decoder", added}}.dump());
  const auto adding = load_tokenizers(folder.path()).source;
  EXPECT_EQ(adding->vocab_size(), next + 2);
  EXPECT_EQ(adding->piece(next + 1), "[E1]");
  std::vector<int32_t> with_added = expected;
  with_added.push_back(next + 1);
  EXPECT_EQ(adding->encode(">>de<<" + text + " </s>[E1]"), with_added);
  EXPECT_EQ(adding->decode(with_added), tokenizer->decode(expected));

  const TemporaryFolder copy;
  adding->save(copy / "vocab.json");
  EXPECT_EQ(load_tokenizers(copy.path()).source->encode("[E1]"), std::vector<int32_t>{next + 1});
  EXPECT_EQ(load_tokenizers(copy.path()).source->encode_for_model(">>de<<" + text).ids, expected);
  std::filesystem::remove(copy / "target.spm");
  EXPECT_NE(message_of<FileError>([&] { load_tokenizers(copy.path()); }).find("target.spm"), std::string::npos);
}

// target.spm cuts what a translator writes; a language code ends with the first "<<".
TEST(MarianTokenizer, CutsEachLanguageByItsOwnModel) {
  const TemporaryFolder folder;
  const auto source = train_sentence_piece({"the old dog sleeps", "the cat sees the old dog"}, {.vocab_size = 19});
  const auto target = train_sentence_piece({"der alte Hund sieht die Katze", "eine Katze"}, {.vocab_size = 22});
  source->save(folder / "source.spm");
  target->save(folder / "target.spm");
  nlohmann::ordered_json vocabulary = {{"</s>", 0}, {"<unk>", 1}, {"<pad>", 2}, {">>de<<", 3}};
  for (const auto& tokenizer : {source.get(), target.get()})
    for (int32_t id = 4; id < tokenizer->vocab_size(); ++id)
      vocabulary.emplace(tokenizer->piece(id), static_cast<int32_t>(vocabulary.size()));
  write_file(folder / "vocab.json", vocabulary.dump());
  const TokenizerPair pair = load_tokenizers(folder.path());
  const auto pieces_of = [](const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
    std::vector<std::string> pieces;
    for (const int32_t id : ids) pieces.push_back(tokenizer.piece(id));
    return pieces;
  };
  const std::string text = "die alte Katze";
  const auto expected = pieces_of(*target, target->encode(text));
  EXPECT_EQ(pieces_of(*pair.target, pair.target->encode_target(text)), expected);
  EXPECT_EQ(pair.target->encode_for_model(text, {.special_tokens = false, .target = true}).ids,
            pair.target->encode_target(text));
  EXPECT_NE(pieces_of(*pair.source, pair.source->encode(text)), expected);
  const auto coded = pair.source->encode(">>de<<the dog<<sees");
  EXPECT_EQ(coded.front(), 3);
  std::vector<std::string> after = pieces_of(*pair.source, {coded.begin() + 1, coded.end()});
  EXPECT_EQ(after.size(), source->encode("the dog<<sees").size()) << "nothing is swallowed";
}

}  // namespace
}  // namespace attune
