// SentencePiece models without tokenizer.json. expected.json is what transformers 5.23 makes of such folders; the two
// models were trained by SentencePiece on 200 lines of English.

#include "attune/text/huggingface/piece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "attune/base/file.h"
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

TEST(PieceTokenizer, T5EndsATextAndHasExtraTokens) {
  const PieceFolder folder("t5.model", "spiece.model", {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 4}});
  const auto tokenizer = folder.load();
  EXPECT_EQ(tokenizer->vocab_size(), 164);
  EXPECT_EQ(tokenizer->token_id("<extra_id_0>"), 163);
  EXPECT_EQ(tokenizer->encode("<extra_id_3>"), Ids{160});
  expect_equal(*tokenizer, "t5");
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

TEST(PieceTokenizer, AnotherClassIsRefusedByName) {
  EXPECT_THAT(message_of<FileError>([] {
                fairseq({{"tokenizer_class", "M2M100Tokenizer"}}).load();
              }),
              HasSubstr("tokenizer_class = \"M2M100Tokenizer\" is read from a tokenizer.json alone"));
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

}  // namespace
}  // namespace attune
