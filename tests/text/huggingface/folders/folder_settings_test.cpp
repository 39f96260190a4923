// What the files beside a tokenizer.json say about it, and the class of transformers that reads them. Ids are those of
// transformers 5.24.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attune/base/file.h"
#include "attune/text/chat_template.h"
#include "attune/text/huggingface/folders/tokenizer_class.h"
#include "attune/text/tokenizer.h"
#include "attune/text/tokenizer_files.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

json tokenizer_data(const std::string& name) {
  return json::parse(read_file(source_dir() / "tests/text/data" / (name + ".json")));
}

// A folder with these files; null leaves one out.
struct TokenizerFolder {
  TemporaryFolder folder;

  explicit TokenizerFolder(const json& tokenizer, const json& config = nullptr, const json& model = nullptr,
                           const json& map = nullptr) {
    write("tokenizer.json", tokenizer);
    write("tokenizer_config.json", config);
    write("config.json", model);
    write("special_tokens_map.json", map);
  }
  TokenizerFolder(const char* name, const json& config = nullptr, const json& model = nullptr,
                  const json& map = nullptr)
      : TokenizerFolder(tokenizer_data(name), config, model, map) {}

  void write(const char* name, const json& values) const {
    if (!values.is_null()) write_file(folder / name, values.dump());
  }
  std::shared_ptr<const Tokenizer> load() const { return load_tokenizers(folder.path()).source; }
  Ids ids(const std::string& text) const { return load()->encode(text); }
  Ids framed(const std::string& text) const { return load()->encode_for_model(text).ids; }
};

json model_type(const char* type) {
  return {{"model_type", type}};
}

// bos, eos, unk, sep, pad, cls, mask
Ids special(const TokenizerFolder& folder) {
  const SpecialIds ids = folder.load()->special_ids();
  return {ids.bos, ids.eos, ids.unk, ids.sep, ids.pad, ids.cls, ids.mask};
}

// <s> 0, <pad> 1, </s> 2, <unk> 3, then pieces of "hi", the languages, 9 and 10, and <mask>. The file has the first
// language at the end.
json translation_tokenizer(const char* model_kind, const std::vector<std::string>& languages) {
  std::vector<std::string> tokens = {"<s>", "<pad>", "</s>", "<unk>", "▁", "h", "i", "▁h", "▁hi"};
  std::vector<std::string> specials = {"<s>", "<pad>", "</s>", "<unk>"};
  for (const std::string& language : languages) {
    specials.push_back(language);
    tokens.push_back(language);
  }
  specials.push_back("<mask>");
  tokens.push_back("<mask>");
  json added = json::array(), vocabulary = json::object(), scores = json::array();
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocabulary[tokens[i]] = i;
    scores.push_back({tokens[i], -static_cast<double>(i)});
    if (std::ranges::find(specials, tokens[i]) != specials.end())
      added.push_back({{"id", i}, {"content", tokens[i]}, {"normalized", false}, {"special", true}});
  }
  const auto text = [](const char* id) { return json{{"Sequence", {{"id", id}, {"type_id", 0}}}}; };
  const auto token = [](const std::string& id) { return json{{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; };
  const json known = {{"</s>", {{"id", "</s>"}, {"ids", {2}}, {"tokens", {"</s>"}}}},
                      {languages[0], {{"id", languages[0]}, {"ids", {9}}, {"tokens", {languages[0]}}}}};
  const json bpe = {
      {"type", "BPE"}, {"unk_token", "<unk>"}, {"fuse_unk", true}, {"vocab", vocabulary}, {"merges", {"▁ h", "▁h i"}}};
  const json unigram = {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", scores}};
  const json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}};
  return {{"added_tokens", added},
          {"pre_tokenizer", metaspace},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {text("A"), token("</s>"), token(languages[0])}},
            {"pair", {text("A"), text("B"), token("</s>"), token(languages[0])}},
            {"special_tokens", known}}},
          {"decoder", metaspace},
          {"model", std::string(model_kind) == "BPE" ? bpe : unigram}};
}

TEST(FolderClass, NllbHasTheSourceLanguageWhereItsSettingsSay) {
  const json file = translation_tokenizer("BPE", {"eng_Latn", "deu_Latn"});
  const auto framed = [&](const json& more, const char* name = "NllbTokenizer") {
    json config = {{"tokenizer_class", name}};
    config.update(more);
    return TokenizerFolder(file, config, model_type("m2m_100")).framed("hi");
  };
  EXPECT_THAT(framed(json::object()), ElementsAre(9, 8, 2));
  EXPECT_THAT(framed(json::object(), "NllbTokenizerFast"), ElementsAre(9, 8, 2));
  EXPECT_THAT(framed({{"src_lang", nullptr}}), ElementsAre(9, 8, 2));
  EXPECT_THAT(framed({{"src_lang", "deu_Latn"}}), ElementsAre(10, 8, 2));
  EXPECT_THAT(framed({{"legacy_behaviour", true}}), ElementsAre(8, 2, 9));
  EXPECT_THAT(framed({{"legacy_behaviour", true}, {"src_lang", "deu_Latn"}}), ElementsAre(8, 2, 10));
  EXPECT_THAT(framed({{"eos_token", "<s>"}}), ElementsAre(9, 8, 0));
  EXPECT_THAT(framed(json::object(), "PreTrainedTokenizerFast"), ElementsAre(8, 2, 9)) << "what the file says";
  const TokenizerFolder by_model(file, nullptr, {{"model_type", "m2m_100"}, {"tokenizer_class", "NllbTokenizer"}});
  EXPECT_THAT(by_model.framed("hi"), ElementsAre(9, 8, 2));
  EXPECT_THAT(by_model.load()->encode_pair("hi", "hi").ids, ElementsAre(9, 8, 8, 2));
  EXPECT_THAT(TokenizerFolder(file).framed("hi"), ElementsAre(8, 2, 9)) << "alone";
}

TEST(FolderClass, MBartHasTheLanguageAfterATextAndMBart50BeforeIt) {
  const json file = translation_tokenizer("Unigram", {"en_XX", "de_DE"});
  const auto framed = [&](const json& config, const json& model) {
    return TokenizerFolder(file, config, model).framed("hi");
  };
  EXPECT_THAT(framed({{"src_lang", "de_DE"}}, model_type("mbart")), ElementsAre(8, 2, 10));
  EXPECT_THAT(framed({{"src_lang", "de_DE"}, {"tokenizer_class", "MBart50TokenizerFast"}}, model_type("mbart")),
              ElementsAre(10, 8, 2));
  EXPECT_THAT(framed(nullptr, {{"model_type", "mbart"}, {"tokenizer_class", "MBart50Tokenizer"}}),
              ElementsAre(9, 8, 2));
}

TEST(FolderClass, AMissingLanguageIsNamedUnlessItIsTheDefault) {
  const json file = translation_tokenizer("BPE", {"fra_Latn", "deu_Latn"});
  const json nllb = {{"tokenizer_class", "NllbTokenizer"}, {"src_lang", "xx"}};
  EXPECT_THAT(message_of<FileError>([&] { TokenizerFolder(file, nllb).load(); }),
              HasSubstr("tokenizer_config.json: src_lang: \"xx\" is not in the vocabulary"));
  EXPECT_THAT(TokenizerFolder(file, {{"tokenizer_class", "NllbTokenizer"}}).framed("hi"), ElementsAre(8, 2, 9));
}

TEST(FolderClass, HasTheSpecialTokensThatNoFileNames) {
  const json uncased = {{"do_lower_case", true}, {"model_max_length", 512}};
  for (const char* type : {"bert", "distilbert", "electra"})
    EXPECT_THAT(special({"bert", uncased, model_type(type)}), ElementsAre(-1, -1, 1, 3, 0, 2, 4)) << type;
  for (const char* type : {"gpt2", "opt", "starcoder2"})
    EXPECT_THAT(special({"gpt2", nullptr, model_type(type)}), ElementsAre(2, 2, 2, -1, -1, -1, -1)) << type;
  EXPECT_THAT(special({"qwen2", nullptr, model_type("qwen3")}), ElementsAre(-1, 2, 2, -1, 2, -1, -1));
  EXPECT_THAT(special({"unigram", nullptr, model_type("t5")}), ElementsAre(-1, 1, 2, -1, 0, -1, -1));
  const TokenizerFolder llama("llama", {{"tokenizer_class", "LlamaTokenizer"}}, model_type("llama"));
  EXPECT_THAT(special(llama), ElementsAre(1, 2, 0, -1, -1, -1, -1));
  // <unk> and <pad> are not in this vocabulary.
  for (const char* type : {"roberta", "bart"})
    EXPECT_THAT(special({"roberta", nullptr, model_type(type)}), ElementsAre(0, 1, -1, 1, -1, 0, 500)) << type;
}

TEST(FolderClass, NamesOfTheFolderGoFirst) {
  const TokenizerFolder one("gpt2", {{"eos_token", "</s>"}, {"unk_token", nullptr}}, model_type("gpt2"));
  EXPECT_THAT(special(one), ElementsAre(2, 1, -1, -1, -1, -1, -1)) << "null: there is none";
  const TokenizerFolder map("gpt2", nullptr, model_type("gpt2"), {{"eos_token", "</s>"}});
  EXPECT_THAT(special(map), ElementsAre(2, 1, 2, -1, -1, -1, -1));
}

TEST(FolderClass, IsTheOneThatAutoTokenizerTakes) {
  EXPECT_THAT(special({"gpt2"}), ElementsAre(-1, -1, -1, -1, -1, -1, -1)) << "a file alone";
  for (const char* type : {"modernbert", "mistral", "phi3"})
    EXPECT_THAT(special({"bert", {{"tokenizer_class", "BertTokenizer"}}, model_type(type)}),
                ElementsAre(-1, -1, 1, -1, -1, -1, -1))
        << type << ": only the model's own unknown token";
  for (const char* own : {"PreTrainedTokenizerFast", "TokenizersBackend", "NoSuchTokenizer"})
    EXPECT_EQ(special({"gpt2", {{"tokenizer_class", own}}, model_type("gpt2")}).at(1), -1) << own;
  using huggingface::class_for;
  EXPECT_EQ(class_for("", {"", "bert"}, false), "BertTokenizer");
  EXPECT_EQ(class_for("", {"ElectraTokenizer", "bert"}, false), "ElectraTokenizer");
  EXPECT_EQ(class_for("BertTokenizer", {"ElectraTokenizer", "albert"}, false), "BertTokenizer");
  EXPECT_EQ(class_for("LlamaTokenizer", {"", "qwen2"}, true), "Qwen2Tokenizer") << "a mistake of many folders";
  EXPECT_EQ(class_for("LlamaTokenizer", {"", "llama"}, true), "");
  EXPECT_EQ(class_for("LlamaTokenizer", {"", "llama"}, false), "LlamaTokenizer");
  EXPECT_EQ(class_for("LlamaTokenizer", {"", "mistral"}, false), "");
  EXPECT_EQ(class_for("", {"", "llama"}, false), "");
}

TEST(FolderClass, ItsSpecialTokensAreFoundInATextAndLeftOutOfADecodedOne) {
  json file = tokenizer_data("bert");
  json& added = file["added_tokens"];
  added.erase(std::ranges::find(added, "[MASK]", [](const json& token) { return token["content"]; }));
  const auto bert = TokenizerFolder(file, nullptr, model_type("bert")).load();
  EXPECT_THAT(bert->encode("a [MASK] b"), ElementsAre(43, 4, 44));
  EXPECT_EQ(bert->decode(bert->encode("a [MASK] b")), "a b");
  EXPECT_THAT(TokenizerFolder(file).ids("a [MASK] b"), ElementsAre(43, 37, 475, 185, 39, 44));
}

// "PreTrainedTokenizerFast": what the files say.
json plain(const json& more) {
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  config.update(more);
  return config;
}

TEST(FolderTokens, ThoseThatOnlyTheConfigurationHasFollowTheVocabulary) {
  const json decoder = {{"502", {{"content", "<|im_end|>"}, {"special", true}}},
                        {"503", {{"content", "<tool>"}, {"normalized", false}}}};
  const TokenizerFolder both("qwen2", plain({{"added_tokens_decoder", decoder}}));
  EXPECT_THAT(both.ids("a <|im_end|> b dog<tool>c"), ElementsAre(67, 223, 502, 283, 223, 501, 503, 69));
  EXPECT_EQ(both.load()->vocab_size(), 504);
  EXPECT_TRUE(both.load()->is_special_token(502));
  EXPECT_FALSE(both.load()->is_special_token(503));

  const TokenizerFolder eos("qwen2", plain({{"eos_token", "<|im_end|>"}}));
  EXPECT_THAT(eos.ids("a<|im_end|>"), ElementsAre(67, 502));
  EXPECT_EQ(eos.load()->eos_id(), 502);
  for (const char* field : {"additional_special_tokens", "extra_special_tokens"}) {
    const TokenizerFolder extra("qwen2", plain({{field, {"<tool>"}}}));
    EXPECT_THAT(extra.ids("a<tool>"), ElementsAre(67, 502)) << field;
    EXPECT_EQ(extra.load()->decode(Ids{67, 502}), "a") << field;
  }
}

TEST(FolderTokens, NamedOnesAreSpecial) {
  EXPECT_THAT(TokenizerFolder("qwen2", plain({{"eos_token", "he"}})).ids("the he"), ElementsAre(86, 262, 223, 262));
  json file = tokenizer_data("qwen2");
  ASSERT_EQ(file["added_tokens"][1]["content"], "</s>");
  file["added_tokens"][1]["special"] = false;
  const auto decoded = [&](const json& config) {
    const auto tokenizer = TokenizerFolder(file, plain(config)).load();
    return tokenizer->decode(tokenizer->encode("hi</s>"));
  };
  EXPECT_EQ(decoded({{"eos_token", "</s>"}}), "hi");
  EXPECT_EQ(decoded({{"additional_special_tokens", {"</s>"}}}), "hi</s>") << "one that is there stays as it is";
}

TEST(FolderTokens, NewOnesHaveTheIdsOfTransformers) {
  const json named = {{"mask_token", "<m>"}, {"pad_token", "<p>"}, {"bos_token", "<b>"},  {"cls_token", "<c>"},
                      {"unk_token", "<u>"},  {"eos_token", "<e>"}, {"sep_token", "<sep>"}};
  EXPECT_THAT(special({"qwen2", plain(named)}), ElementsAre(502, 503, 504, 505, 506, 507, 508));
  const json own = {{"zz_token", "<zz>"}, {"additional_special_tokens", {"<y>"}}};
  EXPECT_THAT(TokenizerFolder("qwen2", plain(own)).ids("a<zz>b<y>"), ElementsAre(67, 502, 68, 503));
  const json object = {{"extra_special_tokens", {{"image_token", "<img>"}}}, {"additional_special_tokens", {"<y>"}}};
  EXPECT_THAT(TokenizerFolder("qwen2", plain(object)).ids("a<img>b<y>"), ElementsAre(67, 502, 68, 503));
  const json stripping = {{"extra_special_tokens", {{{"__type", "AddedToken"}, {"content", "<x>"}, {"lstrip", true}}}}};
  EXPECT_THAT(TokenizerFolder("qwen2", plain(stripping)).ids("a  <x>b"), ElementsAre(67, 502, 68));
}

// Folders of transformers 4 have lists of objects that do not say what they are.
TEST(FolderTokens, ObjectsOfOlderListsAreSpecial) {
  const json list = {{"additional_special_tokens", {{{"content", "<o>"}, {"lstrip", false}, {"normalized", false}}}}};
  const TokenizerFolder folder("qwen2", plain(json::object()), nullptr, list);
  EXPECT_THAT(folder.ids("a<o>"), ElementsAre(67, 502));
  EXPECT_EQ(folder.load()->decode(Ids{67, 502}), "a");
}

TEST(FolderTokens, FlagsOfTheConfigurationGoFirst) {
  json decoder = json::object();
  const json file = tokenizer_data("qwen2");
  for (const json& token : file["added_tokens"]) decoder[std::to_string(token["id"].get<int>())] = token;
  decoder["1"]["lstrip"] = true;
  decoder["1"]["special"] = false;
  for (const char* name : {"PreTrainedTokenizerFast", "Qwen2Tokenizer"}) {
    const json config = {{"tokenizer_class", name}, {"added_tokens_decoder", decoder}};
    const auto tokenizer = TokenizerFolder("qwen2", config).load();
    EXPECT_THAT(tokenizer->encode("a  </s>"), ElementsAre(67, 1)) << name;
    // A class makes its tokenizer anew; else what is special in the file stays so.
    EXPECT_EQ(tokenizer->is_special_token(1), std::string(name) == "PreTrainedTokenizerFast") << name;
  }
}

TEST(FolderTokens, AddedTokensJsonCountsWhereTheConfigurationHasNone) {
  const TokenizerFolder folder("qwen2", plain(json::object()));
  folder.write("added_tokens.json", {{"<old>", 502}, {"</s>", 1}, {"dog", 501}});
  EXPECT_THAT(folder.ids("a<old>b</s> dog"), ElementsAre(67, 502, 68, 1, 223, 501));
  EXPECT_TRUE(folder.load()->is_special_token(1)) << "as the file says";
  folder.write("tokenizer_config.json", plain({{"added_tokens_decoder", json::object()}}));
  EXPECT_THAT(folder.ids("<old>"), ElementsAre(30, 81, 78, 70, 32));
}

TEST(FolderTokens, FoldersWithoutTokenizerJsonAddThemToo) {
  const TemporaryFolder bert;
  write_file(bert / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[\n]\ne\n##1\nx\ne1\n");
  write_file(bert / "tokenizer_config.json", R"({"additional_special_tokens": ["[E2]"], "bos_token": "[E3]"})");
  EXPECT_THAT(load_tokenizer(bert.path())->encode("[E2]x[E3]"), ElementsAre(12, 9, 11));
  const TemporaryFolder gpt2;
  write_file(gpt2 / "vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "H": 4, "e": 5, "Ġ": 6, "He": 7})");
  write_file(gpt2 / "merges.txt", "#version: 0.2\nH e\n");
  const json ends = {{"bos_token", "</s>"}, {"eos_token", "</s>"}, {"unk_token", "</s>"}};
  json config = {{"tokenizer_class", "GPT2Tokenizer"}, {"pad_token", "[PAD]"}, {"additional_special_tokens", {"[E2]"}}};
  config.update(ends);
  write_file(gpt2 / "tokenizer_config.json", config.dump());
  EXPECT_THAT(load_tokenizer(gpt2.path())->encode("He[PAD]e[E2]"), ElementsAre(7, 8, 5, 9));
}

TEST(FolderTokens, TheMapGoesBeforeAConfigurationWithoutAddedTokens) {
  const json map = {
      {"eos_token", "<|endoftext|>"}, {"pad_token", "<|endoftext|>"}, {"additional_special_tokens", {"<q>"}}};
  const auto folder = [&](const json& config) { return TokenizerFolder("qwen2", plain(config), nullptr, map); };
  EXPECT_THAT(special(folder({{"eos_token", "</s>"}})), ElementsAre(-1, 2, -1, -1, 2, -1, -1));
  EXPECT_THAT(folder({{"eos_token", "</s>"}}).ids("a<q>"), ElementsAre(67, 502));
  EXPECT_THAT(folder({{"additional_special_tokens", {"<r>"}}}).ids("a<r>"), ElementsAre(67, 502));
  const json decoder = {{"eos_token", "</s>"}, {"added_tokens_decoder", json::object()}};
  EXPECT_THAT(special(folder(decoder)), ElementsAre(-1, 1, -1, -1, -1, -1, -1));
  EXPECT_EQ(folder(decoder).load()->vocab_size(), 502);
  const TokenizerFolder none("qwen2", plain({{"eos_token", "</s>"}}), nullptr, {{"eos_token", nullptr}});
  EXPECT_EQ(none.load()->eos_id(), -1);
}

TEST(FolderTokens, TooManyAreRefused) {
  json tokens = json::array();
  for (int i = 0; i <= 1 << 18; ++i) tokens.push_back("<" + std::to_string(i) + ">");
  EXPECT_THAT(message_of<FileError>([&] {
                TokenizerFolder("gpt2", plain({{"extra_special_tokens", std::move(tokens)}})).load();
              }),
              HasSubstr("tokenizer_config.json: has more than 262144 added tokens"));
}

TEST(FolderFields, ThoseOfBertGoBeforeItsFile) {
  const auto ids = [](const json& config, const char* text) {
    return TokenizerFolder("bert", config, model_type("bert")).ids(text);
  };
  EXPECT_THAT(ids(nullptr, "He Said Dog"), ElementsAre(50, 163, 61, 161, 306, 501));
  EXPECT_THAT(ids({{"do_lower_case", false}}, "He Said Dog"), ElementsAre(1, 1, 1));
  EXPECT_THAT(ids({{"tokenizer_class", "ElectraTokenizerFast"}, {"do_lower_case", false}}, "He"), ElementsAre(1));
  EXPECT_THAT(ids({{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", false}}, "He"),
              ElementsAre(50, 163));
  EXPECT_THAT(ids({{"tokenize_chinese_chars", false}}, "中文"), ElementsAre(1));
  EXPECT_THAT(ids({{"strip_accents", false}}, "café cafe"), ElementsAre(1, 314, 179, 163));
  EXPECT_THAT(ids({{"do_lower_case", false}, {"strip_accents", true}}, "cafés"), ElementsAre(314, 179, 231));
  EXPECT_THAT(message_of<FileError>([&] {
                ids({{"do_lower_case", 1}}, "");
              }),
              HasSubstr("tokenizer_config.json: do_lower_case: is 1, expected true or false"));
}

TEST(FolderFields, ASpaceInFrontIsAsTheConfigurationSays) {
  const auto ids = [](const char* name, const char* type, const json& config) {
    return TokenizerFolder(name, config, model_type(type)).ids("he");
  };
  const json with = {{"add_prefix_space", true}}, without = {{"add_prefix_space", false}};
  EXPECT_THAT(ids("roberta", "roberta", nullptr), ElementsAre(223, 262));
  EXPECT_THAT(ids("roberta", "roberta", without), ElementsAre(262));
  EXPECT_THAT(ids("roberta", "bart", without), ElementsAre(262));
  EXPECT_THAT(ids("gpt2", "gpt2", nullptr), ElementsAre(262));
  EXPECT_THAT(ids("gpt2", "gpt2", with), ElementsAre(223, 262));
  EXPECT_THAT(ids("gpt2", "gpt_neox", with), ElementsAre(223, 262));
  EXPECT_THAT(ids("qwen2", "qwen3", with), ElementsAre(223, 262)) << "a step of a sequence";
  EXPECT_THAT(ids("gpt2", "llama", with), ElementsAre(262)) << "no class reads it";
}

TEST(FolderFields, SpecialTokensMayBeText) {
  const json split = {{"split_special_tokens", true}};
  EXPECT_THAT(TokenizerFolder("gpt2", split).ids("a<s>b"), ElementsAre(67, 30, 85, 32, 68));
  EXPECT_THAT(TokenizerFolder("bert", split).ids("a<mask> dog b"), ElementsAre(43, 32, 475, 185, 34, 501, 44))
      << "others are tokens";
  const TemporaryFolder gpt2;
  write_file(gpt2 / "vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "H": 4, "e": 5, "Ġ": 6, "He": 7})");
  write_file(gpt2 / "merges.txt", "#version: 0.2\nH e\n");
  json config = {{"tokenizer_class", "GPT2Tokenizer"}, {"eos_token", "</s>"}};
  write_file(gpt2 / "tokenizer_config.json", config.dump());
  EXPECT_THAT(load_tokenizer(gpt2.path())->encode("He</s>e"), ElementsAre(7, 2, 5));
  config.update(split);
  write_file(gpt2 / "tokenizer_config.json", config.dump());
  EXPECT_THAT(load_tokenizer(gpt2.path())->encode("He</s>e"), ElementsAre(7, 5));
}

// A copy has no config.json, or another one.
TEST(FolderCopies, AreReadByTheSameClass) {
  const json translation = translation_tokenizer("Unigram", {"en_XX", "de_DE"});
  struct Case {
    json file, config, model, map;
  };
  const Case cases[] = {
      {tokenizer_data("bert"), nullptr, model_type("bert"), nullptr},
      {tokenizer_data("bert"), {{"do_lower_case", false}, {"chat_template", "{{ a }}"}}, model_type("bert"), nullptr},
      {tokenizer_data("bert"), {{"tokenizer_class", "BertTokenizer"}}, model_type("modernbert"), nullptr},
      {tokenizer_data("gpt2"), {{"tokenizer_class", "LlamaTokenizer"}}, model_type("qwen2"), nullptr},
      {tokenizer_data("gpt2"), {{"eos_token", "</s>"}}, model_type("gpt2"), {{"eos_token", "<s>"}}},
      {tokenizer_data("gpt2"), plain({{"pad_token", "<new>"}}), model_type("gpt2"), nullptr},
      {translation, {{"src_lang", "de_DE"}}, model_type("mbart"), nullptr}};
  for (const Case& one : cases) {
    const TokenizerFolder folder(one.file, one.config, one.model, one.map);
    const auto tokenizer = folder.load();
    const TokenizerFolder copy(json::object());
    tokenizer->save(copy.folder / "tokenizer.json");
    EXPECT_FALSE(std::filesystem::exists(copy.folder / "config.json"));
    const auto again = copy.load();
    EXPECT_EQ(special(copy), special(folder)) << one.config << one.model;
    EXPECT_EQ(again->vocab_size(), tokenizer->vocab_size());
    for (const char* text : {"hi", "He </s><s>b"})
      EXPECT_EQ(again->encode_for_model(text).ids, tokenizer->encode_for_model(text).ids) << one.config << one.model;
    copy.write("config.json", {{"architecture", "decoder_lm"}});
    EXPECT_EQ(special(copy), special(folder)) << one.config << one.model;
  }
}

TEST(FolderCopies, KeepAFileThatNamesItsClass) {
  const json config = {{"tokenizer_class", "BertTokenizerFast"}, {"model_max_length", 512}};
  const TokenizerFolder folder("bert", config, model_type("bert"));
  const TemporaryFolder copy;
  folder.load()->save(copy / "tokenizer.json");
  EXPECT_EQ(read_file(copy / "tokenizer_config.json"), config.dump());
}

TEST(FolderClass, AConfigJsonThatIsNoObjectIsNamed) {
  const TokenizerFolder folder("gpt2", nullptr, json::array());
  EXPECT_THAT(message_of<FileError>([&] { folder.load(); }), HasSubstr("config.json: is [], expected an object"));
}

// A translation model may have two tokenizers of the hub, each with settings of its own.
TEST(FolderSettings, OfTwoTokenizersInAFolderAreKeptApart) {
  const json added = {{"added_tokens_decoder", {{"502", {{"content", "<new>"}}}}}};
  const TokenizerFolder source("qwen2"), target("gpt2", added);
  const TemporaryFolder both, again;
  save_tokenizers(both.path(), *source.load(), *target.load());
  const auto expect_the_same = [&](const TokenizerPair& read) {
    EXPECT_EQ(read.source->vocab_size(), source.load()->vocab_size());
    EXPECT_EQ(read.target->vocab_size(), target.load()->vocab_size());
    EXPECT_EQ(read.target->encode("a<new>b"), target.ids("a<new>b"));
  };
  const TokenizerPair read = load_tokenizers(both.path());
  expect_the_same(read);
  save_tokenizers(again.path(), *read.source, *read.target);
  expect_the_same(load_tokenizers(again.path()));
  save_tokenizers(again.path(), *read.target, *read.target);
  EXPECT_EQ(load_tokenizers(again.path()).source->vocab_size(), target.load()->vocab_size());
}

TEST(FolderSettings, ATokenizerJsonOfAnyNameIsSavedUnderItsOwn) {
  const auto tokenizer = load_tokenizer(source_dir() / "tests/text/data/bert.json");
  const TemporaryFolder copy;
  save_tokenizers(copy.path(), *tokenizer, *tokenizer);
  EXPECT_EQ(load_tokenizers(copy.path()).source->encode("Hello"), tokenizer->encode("Hello"));
}

TEST(FolderSettings, AListThatBothFilesHaveCountsOnce) {
  const json list = {{"additional_special_tokens", {"<one>", "<two>"}}};
  EXPECT_EQ(TokenizerFolder("gpt2", list, nullptr, list).load()->vocab_size(),
            TokenizerFolder("gpt2", list).load()->vocab_size());
}

TEST(FolderSettings, TemplatesOfChatsHaveTheTokensOfTheClass) {
  const TokenizerFolder folder("gpt2", {{"chat_template", "{{ messages[0].content }}{{ eos_token }}{{ pad_token }}"}},
                               model_type("gpt2"));
  EXPECT_EQ(ChatTemplate::load(folder.folder.path())->render({{"user", "hi"}}), "hi<|endoftext|>");
}

}  // namespace
}  // namespace attune
