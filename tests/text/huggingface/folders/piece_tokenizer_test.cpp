// SentencePiece models without tokenizer.json. expected.json is what transformers 5.23 makes of such folders; the two
// models were trained by SentencePiece on 200 lines of English.

#include "attune/text/huggingface/folders/piece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sentencepiece_processor.h>
#include <chrono>
#include <nlohmann/json.hpp>

#include "attune/base/file.h"
#include "attune/text/sentence_piece_processor.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/tokenizer_files.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::filesystem::path piece_data() {
  return source_dir() / "tests/text/data/pieces";
}

// A folder of this class of tokenizers.
struct PieceFolder {
  TemporaryFolder folder;

  PieceFolder(const std::string& model, const std::string& name, const json& config) {
    std::filesystem::copy_file(piece_data() / model, folder / name);
    write_file(folder / "tokenizer_config.json", config.dump());
  }
  std::shared_ptr<const Tokenizer> load() const { return load_tokenizers(folder.path()).source; }
};

PieceFolder fairseq(const json& config) {
  return {"fairseq.model", "sentencepiece.bpe.model", config};
}

void expect_equal(const Tokenizer& tokenizer, const std::string& name) {
  const json expected = json::parse(read_file(piece_data() / "expected.json", 1 << 20)).at(name);
  for (const json& sample : expected.at("texts")) {
    const std::string text = sample.at("text");
    EXPECT_EQ(tokenizer.encode_for_model(text).ids, sample.at("ids").get<Ids>()) << text;
    EXPECT_EQ(tokenizer.encode(text), sample.at("ids_without_special").get<Ids>()) << text;
    EXPECT_EQ(tokenizer.decode(sample.at("ids").get<Ids>()), sample.at("decoded").get<std::string>()) << text;
  }
  EXPECT_EQ(tokenizer.encode_pair("Hello", "world!").ids, expected.at("pair").get<Ids>());
}

TEST(PieceTokenizer, XlmRobertaHasTheIdsOfFairseq) {
  const PieceFolder folder = fairseq({{"tokenizer_class", "XLMRobertaTokenizerFast"}});
  const auto tokenizer = folder.load();
  EXPECT_EQ(tokenizer->vocab_size(), 162);  // 160 pieces, one more at the begin, and <mask>
  EXPECT_EQ(tokenizer->piece(0), "<s>");
  EXPECT_EQ(tokenizer->token_id("<mask>"), 161);
  EXPECT_EQ(tokenizer->unk_id(), 3);
  EXPECT_EQ(tokenizer->encode("<mask>"), Ids{161});
  expect_equal(*tokenizer, "xlm-roberta");
}

TEST(PieceTokenizer, MBartHasTheLanguageAfterATextAndMBart50BeforeIt) {
  const json languages = {"ar_AR", "cs_CZ", "de_DE"};
  for (const auto& [name, of_class] : {std::pair("mbart", "MBartTokenizer"), std::pair("mbart50", "MBart50Tokenizer")})
    expect_equal(
        *fairseq({{"tokenizer_class", of_class}, {"src_lang", "de_DE"}, {"additional_special_tokens", languages}})
             .load(),
        name);
}

TEST(PieceTokenizer, ATextIsEnglishWhereTheFolderSaysNothing) {
  const auto ids = [](json config, const json& languages) {
    config["additional_special_tokens"] = languages;
    return fairseq(config).load()->encode_for_model("so").ids;
  };
  const json codes = {"ar_AR", "en_XX"}, scripts = {"deu_Latn", "eng_Latn"};  // 161 and 162
  EXPECT_EQ(ids({{"tokenizer_class", "MBart50Tokenizer"}, {"src_lang", nullptr}}, codes).front(), 162);
  EXPECT_EQ(ids({{"tokenizer_class", "MBartTokenizer"}}, codes).back(), 162);
  EXPECT_EQ(ids({{"tokenizer_class", "NllbTokenizer"}}, scripts).front(), 162);
  EXPECT_EQ(ids({{"tokenizer_class", "NllbTokenizer"}, {"legacy_behaviour", true}}, scripts).back(), 162);
}

TEST(PieceTokenizer, ALanguageThatAFolderLacksIsNamed) {
  const PieceFolder folder = fairseq(
      {{"tokenizer_class", "MBartTokenizer"}, {"src_lang", "de"}, {"additional_special_tokens", {"ar_AR", "de_DE"}}});
  EXPECT_THAT(message_of<FileError>([&] { folder.load(); }),
              HasSubstr("src_lang: \"de\" is none of additional_special_tokens"));
}

// fairseq has <mask> after the languages.
TEST(PieceTokenizer, NllbHasTheLanguageBeforeAText) {
  json config = {{"tokenizer_class", "NllbTokenizer"},
                 {"src_lang", "fra_Latn"},
                 {"additional_special_tokens", {"deu_Latn", "eng_Latn", "fra_Latn"}}};
  const auto tokenizer = fairseq(config).load();
  EXPECT_EQ(tokenizer->token_id("deu_Latn"), 161);
  EXPECT_EQ(tokenizer->token_id("<mask>"), 164);
  EXPECT_TRUE(tokenizer->is_special_token(163));
  EXPECT_EQ(tokenizer->encode_for_model("so").ids.front(), 163);
  EXPECT_EQ(tokenizer->encode_for_model("so").ids.back(), 2);
  config["legacy_behaviour"] = true;
  EXPECT_EQ(fairseq(config).load()->encode_for_model("so").ids.back(), 163);
  config.erase("additional_special_tokens");
  EXPECT_THAT(message_of<FileError>([&] { fairseq(config).load(); }), HasSubstr("name no languages"));
}

// Makes a folder one of M2M100: most pieces have numbers, the last one the first.
void number_pieces(const PieceFolder& folder) {
  const std::string model = read_file(folder.folder / "sentencepiece.bpe.model", 1 << 20);
  const auto processor = load_sentence_piece(model, "fairseq.model");
  json vocabulary = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
  const int pieces = processor->GetPieceSize();
  for (int i = 0; i + 3 < pieces; ++i)
    if (i % 9 != 0) vocabulary[processor->IdToPiece(pieces - 1 - i)] = vocabulary.size();
  write_file(folder.folder / "vocab.json", vocabulary.dump());
  write_file(folder.folder / "special_tokens_map.json",
             json{{"additional_special_tokens", {"__af__", "__am__", "__ar__"}}}.dump());
}

TEST(M2M100, HasTheLanguageBeforeATextAndIdsOfVocabJson) {
  for (const json& config :
       {json{{"tokenizer_class", "M2M100Tokenizer"}, {"src_lang", "ar"}}, json{{"src_lang", "ar"}}}) {
    const PieceFolder folder = fairseq(config);
    number_pieces(folder);
    const auto tokenizer = folder.load();
    expect_equal(*tokenizer, "m2m100");
    EXPECT_EQ(tokenizer->token_id("__af__"), tokenizer->vocab_size() - 3);
    EXPECT_TRUE(tokenizer->is_special_token(tokenizer->token_id("__am__")));
    const TemporaryFolder copy;
    save_tokenizers(copy.path(), *tokenizer, *tokenizer);
    expect_equal(*load_tokenizers(copy.path()).source, "m2m100");
  }
}

TEST(M2M100, RefusesAFolderWithoutLanguagesOrNumbers) {
  const PieceFolder folder = fairseq({{"tokenizer_class", "M2M100Tokenizer"}});
  number_pieces(folder);
  const auto message = [&] { return message_of<FileError>([&] { folder.load(); }); };
  write_file(folder.folder / "special_tokens_map.json", "{}");
  EXPECT_THAT(message(), HasSubstr("sentencepiece.bpe.model: additional_special_tokens name no languages"));
  write_file(folder.folder / "vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2})");
  EXPECT_THAT(message(), HasSubstr("vocab.json: the token <unk> is missing"));
  std::filesystem::remove(folder.folder / "vocab.json");
  EXPECT_THAT(message(), HasSubstr("vocab.json"));
}

TEST(PieceTokenizer, T5EndsATextAndHasExtraTokens) {
  const PieceFolder folder("t5.model", "spiece.model", {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 4}});
  const auto tokenizer = folder.load();
  EXPECT_EQ(tokenizer->vocab_size(), 164);
  EXPECT_EQ(tokenizer->token_id("<extra_id_0>"), 163);
  EXPECT_EQ(tokenizer->encode("<extra_id_3>"), Ids{160});
  expect_equal(*tokenizer, "t5");
}

// The class is found by the name of the file and the settings beside it, and a folder has both once.
TEST(PieceTokenizer, IsNotSavedBesideAnother) {
  const PieceFolder llama("fairseq.model", "tokenizer.model", {{"tokenizer_class", "LlamaTokenizer"}});
  const SentencePieceTokenizer plain(piece_data() / "fairseq.model");
  const TemporaryFolder copy;
  EXPECT_THAT(message_of<ConfigError>([&] { save_tokenizers(copy.path(), plain, *llama.load()); }),
              HasSubstr("tokenizer.model: a folder holds two different tokenizers only as"));
  EXPECT_TRUE(std::filesystem::is_empty(copy.path()));
}

TEST(PieceTokenizer, LlamaBeginsAText) {
  const auto load = [](const json& more) {
    json config = {{"tokenizer_class", "LlamaTokenizer"}};
    config.update(more);
    return PieceFolder("fairseq.model", "tokenizer.model", config).load();
  };
  Ids ids = load(json::object())->encode("so");
  EXPECT_EQ(load({{"add_bos_token", false}, {"add_eos_token", true}})->encode_for_model("so").ids.back(), 2);
  ids.insert(ids.begin(), 1);
  EXPECT_EQ(load(json::object())->encode_for_model("so").ids, ids);
}

// A text, its ids, and what they are decoded to with and without special tokens: as transformers 5.24 has them.
struct Sample {
  const char* text;
  Ids ids;
  const char* whole;
  const char* decoded;
};

void expect_samples(const Tokenizer& tokenizer, const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.text);
    EXPECT_EQ(tokenizer.encode(sample.text), sample.ids);
    EXPECT_EQ(tokenizer.decode(sample.ids, true), sample.whole);
    EXPECT_EQ(tokenizer.decode(sample.ids), sample.decoded);
  }
}

TEST(PieceTokenizer, TokensOfLlamaInATextAreThemselves) {
  json config = {{"tokenizer_class", "LlamaTokenizer"}};
  const auto load = [&] { return PieceFolder("fairseq.model", "tokenizer.model", config).load(); };
  expect_samples(*load(), {{"<s>so", {1, 4, 15}, "<s>so", "so"},
                           {"<s> so", {1, 3, 4, 15}, "<s> so", "so"},
                           {"so</s>so", {3, 4, 15, 2, 4, 15}, "so</s>so", "soso"},
                           {"so<unk>so", {3, 4, 15, 0, 4, 15}, "so<unk>so", "soso"}});
  config["added_tokens_decoder"] = {{"160", {{"content", "<|im_start|>"}, {"special", true}}},
                                    {"161", {{"content", "plain"}, {"special", false}}}};
  const char* const text = "a<|im_start|>soplain so";
  expect_samples(*load(), {{text, {3, 7, 160, 4, 15, 161, 3, 4, 15}, text, "asoplain so"}});
  config["legacy"] = true;
  config.erase("added_tokens_decoder");
  expect_samples(
      *load(), {{"<s>so", {1, 3, 4, 15}, "<s> so", "so"}, {"so</s>so", {3, 4, 15, 2, 3, 4, 15}, "so</s> so", "so so"}});
}

TEST(PieceTokenizer, TokensOfT5InATextAreThemselves) {
  const PieceFolder folder("t5.model", "spiece.model", {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 4}});
  expect_samples(*folder.load(), {{"a</s>b", {3, 7, 1, 3, 21}, "a</s> b", "a b"},
                                  {"<pad>a <unk>", {0, 3, 7, 2}, "<pad> a<unk>", "a"},
                                  {"a<extra_id_0> b", {3, 7, 163, 3, 21}, "a<extra_id_0> b", "a b"},
                                  {"</s>so", {1, 3, 4, 15}, "</s> so", "so"}});
}

// As transformers 5.23 has it.
TEST(PieceTokenizer, TokensThatAFolderAddsFollowThoseOfTheClass) {
  const auto added = [](const char* id) {
    return json{{id, {{"content", "[E1]"}, {"rstrip", true}}}, {"0", {{"content", "<s>"}, {"special", true}}}};
  };
  const auto xlmr =
      fairseq({{"tokenizer_class", "XLMRobertaTokenizer"}, {"added_tokens_decoder", added("162")}}).load();
  EXPECT_EQ(xlmr->vocab_size(), 163);
  EXPECT_EQ(xlmr->encode("so [E1] so"), (Ids{4, 5, 16, 162, 4, 5, 16}));
  EXPECT_FALSE(xlmr->is_special_token(162));
  const json mbart = {{"tokenizer_class", "MBartTokenizer"},
                      {"additional_special_tokens", {"ar_AR", "cs_CZ"}},
                      {"added_tokens_decoder", added("164")}};
  EXPECT_EQ(fairseq(mbart).load()->encode("so[E1]<mask>"), (Ids{4, 5, 16, 164, 163}));

  const PieceFolder m2m100 = fairseq({{"tokenizer_class", "M2M100Tokenizer"}, {"added_tokens_decoder", added("999")}});
  number_pieces(m2m100);
  const auto tokenizer = m2m100.load();
  const int32_t last = tokenizer->vocab_size() - 1;
  EXPECT_EQ(tokenizer->token_id("__ar__"), last - 1);
  EXPECT_EQ(tokenizer->encode("[E1]"), Ids{last});
}

// A text in front of the first token knows no token either.
TEST(PieceTokenizer, AnUnknownCharacterBehindATokenOfLlamaIsNotLost) {
  const auto llama = PieceFolder("fairseq.model", "tokenizer.model", {{"tokenizer_class", "LlamaTokenizer"}}).load();
  EXPECT_EQ(llama->encode("ж"), (Ids{3, 0}));
  EXPECT_EQ(llama->encode("</s>ж"), (Ids{2, 0}));
  EXPECT_EQ(llama->encode("</s>жso"), (Ids{2, 0, 4, 15}));
  EXPECT_EQ(llama->encode("</s>жжso</s>so"), (Ids{2, 0, 4, 15, 2, 4, 15}));
}

TEST(PieceTokenizer, ManyTokensInATextTakeLinearTime) {
  const auto xlmr = fairseq({{"tokenizer_class", "XLMRobertaTokenizer"}}).load();
  std::string text;
  for (int i = 0; i < 1 << 17; ++i) text += "<s>";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(xlmr->encode(text), Ids(1 << 17, 0));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "quadratic time is a minute";
}

TEST(PieceTokenizer, AnAddedTokenWithoutTextIsRefused) {
  const PieceFolder folder(
      "t5.model", "spiece.model",
      {{"tokenizer_class", "T5Tokenizer"}, {"added_tokens_decoder", {{"160", {{"content", ""}}}}}});
  EXPECT_THAT(message_of<FileError>([&] { folder.load(); }), HasSubstr("has a token without text"));
}

// mT5's folders name no class.
TEST(PieceTokenizer, TheClassIsThatOfTheModelWhereTheFolderNamesNone) {
  const PieceFolder folder("t5.model", "spiece.model", {{"eos_token", "</s>"}, {"extra_ids", 0}});
  EXPECT_THAT(message_of<FileError>([&] { folder.load(); }), HasSubstr("tokenizer_class = \"\""));
  write_file(folder.folder / "config.json", R"({"model_type": "mt5"})");
  const Ids expected = {3, 4, 15, 1};
  EXPECT_EQ(folder.load()->encode_for_model("so").ids, expected);
  const TemporaryFolder copy;  // without config.json
  const auto loaded = folder.load();
  save_tokenizers(copy.path(), *loaded, *loaded);
  EXPECT_EQ(load_tokenizers(copy.path()).source->encode_for_model("so").ids, expected);
  write_file(folder.folder / "config.json", R"({"tokenizer_class": "XLMRobertaTokenizerFast"})");
  EXPECT_EQ(folder.load()->unk_id(), 3);
}

TEST(PieceTokenizer, AnotherClassIsRefusedByName) {
  EXPECT_THAT(message_of<FileError>([] {
                fairseq({{"tokenizer_class", "BigBirdTokenizer"}}).load();
              }),
              HasSubstr("tokenizer_class = \"BigBirdTokenizer\" is read from a tokenizer.json alone"));
  EXPECT_THAT(message_of<FileError>([] { fairseq(json::object()).load(); }), HasSubstr("tokenizer_class = \"\""));
}

TEST(PieceTokenizer, AnEmptyModelIsRefused) {
  const PieceFolder folder = fairseq({{"tokenizer_class", "XLMRobertaTokenizer"}});
  write_file(folder.folder / "sentencepiece.bpe.model", "");
  EXPECT_THAT(message_of<FileError>([&] { folder.load(); }), HasSubstr("sentencepiece.bpe.model"));
}

// What `attune quantize` copies.
TEST(PieceTokenizer, ASavedOneReadsTheSame) {
  const PieceFolder folder = fairseq({{"tokenizer_class", "XLMRobertaTokenizer"}});
  const auto tokenizer = folder.load();
  const TemporaryFolder copy;
  save_tokenizers(copy.path(), *tokenizer, *tokenizer);
  EXPECT_EQ(load_tokenizers(copy.path()).source->encode_for_model("so").ids, tokenizer->encode_for_model("so").ids);
}

// In the copy null would say that there is no such token.
TEST(PieceTokenizer, TheCopyOfOneWhoseModelTellsItsClassNamesNoTokensMore) {
  const PieceFolder folder = fairseq({{"eos_token", "</s>"}});
  write_file(folder.folder / "config.json", R"({"model_type": "xlm-roberta"})");
  const auto tokenizer = folder.load();
  const TemporaryFolder copy;
  save_tokenizers(copy.path(), *tokenizer, *tokenizer);
  EXPECT_EQ(json::parse(read_file(copy.path() / "tokenizer_config.json")),
            (json{{"eos_token", "</s>"}, {"tokenizer_class", "XLMRobertaTokenizer"}}));
}

}  // namespace
}  // namespace attune
