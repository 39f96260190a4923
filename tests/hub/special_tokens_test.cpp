// The special tokens of hub folders: what stands around prompts and texts, tokens that the model does not have, and how
// long continuations are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/data/masking.h"
#include "attune/data/text_stream.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/export.h"
#include "attune/inference/languages.h"
#include "attune/inference/quantize.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/text/text_frame.h"
#include "tests/hub/changed_folder.h"

namespace attune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tokens = std::vector<int32_t>;

Json special_token(const char* text, int64_t id) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Writes a tokenizer of words: <unk> 0, <s> 1, </s> 2, then "w3" and so on up to `tokens` tokens, and one more,
// "<extra>" with the id `extra`. <s> begins each text.
void write_tokenizer(const std::filesystem::path& folder, int64_t tokens, int64_t extra) {
  Json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int64_t id = 3; id < tokens; ++id) vocabulary["w" + std::to_string(id)] = id;
  const auto frame = [](std::vector<const char*> texts) {
    Json pieces = Json::array({{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}});
    for (const char* text : texts) pieces.push_back({{"Sequence", {{"id", text}, {"type_id", 0}}}});
    return pieces;
  };
  const Json bos = {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}};
  write_json_file(folder / "tokenizer.json",
                  {{"version", "1.0"},
                   {"truncation", nullptr},
                   {"padding", nullptr},
                   {"added_tokens",
                    {special_token("<unk>", 0), special_token("<s>", 1), special_token("</s>", 2),
                     special_token("<extra>", extra)}},
                   {"normalizer", nullptr},
                   {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
                   {"post_processor",
                    {{"type", "TemplateProcessing"},
                     {"single", frame({"A"})},
                     {"pair", frame({"A", "B"})},
                     {"special_tokens", {{"<s>", bos}}}}},
                   {"decoder", nullptr},
                   {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}}}});
  write_json_file(folder / "tokenizer_config.json", {{"bos_token", "<s>"},
                                                     {"eos_token", "</s>"},
                                                     {"unk_token", "<unk>"},
                                                     {"pad_token", "<extra>"},
                                                     {"tokenizer_class", "PreTrainedTokenizerFast"}});
}

// A model of the repository, with that tokenizer; <extra> has the first id behind the model's vocabulary.
struct WordFolder : ChangedFolder {
  explicit WordFolder(const std::string& name) : ChangedFolder(name) {
    const int64_t vocab = config.at("vocab_size");
    write_tokenizer(folder.path(), vocab, vocab);
    open();
  }
  const std::filesystem::path& path() const { return folder.path(); }
  std::string extra() const { return std::to_string(config.at("vocab_size").get<int64_t>()); }
};

TEST(HubSpecialTokens, ATemplateWritesThemItself) {
  const WordFolder folder("gpt2");
  const TextGenerator generator = TextGenerator::load(folder.path());
  EXPECT_THAT(generator.encode_prompt("w5 w6"), ElementsAre(1, 5, 6));
  EXPECT_THAT(generator.encode_prompt("<s> w5 w6", true), ElementsAre(1, 5, 6));
  const SamplingConfig greedy{.temperature = 0, .max_tokens = 8, .special_tokens = true};
  const GenerateOptions with_tokens{.sampling = greedy, .prompts_have_special_tokens = true};
  EXPECT_EQ(generator.generate("<s> w5 w6", with_tokens).tokens,
            generator.generate("w5 w6", {.sampling = greedy}).tokens);
  EXPECT_THAT(message_of<DataError>([&] { generator.generate("", with_tokens); }), HasSubstr("has no tokens"));
}

TEST(HubSpecialTokens, AnEmptyPromptNeedsATokenToBeginWith) {
  const WordFolder folder("gpt2");
  Json tokenizer = read_json_file(folder.path() / "tokenizer.json");
  tokenizer["post_processor"] = nullptr;
  write_json_file(folder.path() / "tokenizer.json", tokenizer);
  Json names = read_json_file(folder.path() / "tokenizer_config.json");
  names.erase("bos_token");
  write_json_file(folder.path() / "tokenizer_config.json", names);
  const TextGenerator generator = TextGenerator::load(folder.path());
  EXPECT_EQ(message_of<DataError>([&] {
              generator.generate({"w5", ""});
            }),
            "prompt 2: the prompt is empty, and the tokenizer names no bos to begin with");
}

TEST(HubSpecialTokens, MaxLengthCountsThePrompt) {
  const WordFolder folder("gpt2");
  const auto generated = [&](const char* settings, GenerateOptions options = {}) {
    write_file(folder.path() / "generation_config.json", settings);
    const TextGenerator generator = TextGenerator::load(folder.path());
    if (options.sampling) options.sampling->temperature = 0;
    return generator.generate("w5 w6", options).tokens.size();
  };
  EXPECT_EQ(generated(R"({"max_length": 12, "eos_token_id": 2, "suppress_tokens": [2]})"), 9u);
  EXPECT_EQ(generated(R"({"max_length": 12, "max_new_tokens": 4, "eos_token_id": 2, "suppress_tokens": [2]})"), 4u);
  EXPECT_THAT(message_of<DataError>([&] { generated(R"({"max_length": 3})"); }),  // as in transformers
              HasSubstr("prompt 1: has 3 tokens, but max_length = 3 limits"));
  const char* const twelve = R"({"max_length": 12, "eos_token_id": 2, "suppress_tokens": [2]})";
  write_file(folder.path() / "generation_config.json", twelve);
  SamplingConfig sampling = TextGenerator::load(folder.path()).sampling();
  sampling.max_tokens = 20;  // what a caller asks for goes first
  EXPECT_EQ(generated(twelve, {.sampling = sampling}), 20u);
}

TEST(HubSpecialTokens, TheSecondTextHasItsTypeUnlessTheModelIsGivenNone) {
  const WordFolder bert("bert-classifier");
  Json tokenizer = read_json_file(bert.path() / "tokenizer.json");
  tokenizer["post_processor"]["pair"].back()["Sequence"]["type_id"] = 1;
  write_json_file(bert.path() / "tokenizer.json", tokenizer);
  const auto types = [&] { return load_tokenizer(bert.path())->encode_pair("w5", "w6").type_ids; };
  EXPECT_THAT(types(), ElementsAre(0, 0, 1));
  Json config = read_json_file(bert.path() / "tokenizer_config.json");
  config["model_input_names"] = {"input_ids", "token_type_ids", "attention_mask"};
  write_json_file(bert.path() / "tokenizer_config.json", config);
  EXPECT_THAT(types(), ElementsAre(0, 0, 1));
  config["model_input_names"] = {"input_ids", "attention_mask"};
  write_json_file(bert.path() / "tokenizer_config.json", config);
  EXPECT_THAT(types(), ElementsAre(0, 0, 0));
}

TEST(HubSpecialTokens, ATokenThatTheModelDoesNotHaveIsNamedWhereATextHasIt) {
  const WordFolder lm("gpt2");
  const TextGenerator generator = TextGenerator::load(lm.path());
  const std::string message =
      "has \"<extra>\", token " + lm.extra() + " of the tokenizer, but the model has " + lm.extra();
  EXPECT_THAT(message_of<DataError>([&] { generator.generate("w5 <extra>"); }), HasSubstr(message));
  EXPECT_EQ(generator.tokenizer().pad_id(), -1);
  EXPECT_EQ(generator.tokenizer().token_id("<extra>"), -1);
  EXPECT_NO_THROW(generator.generate("w5", {.sampling = SamplingConfig{.max_tokens = 4, .special_tokens = true}}));

  const WordFolder bert("bert-classifier");
  const Classifier classifier = Classifier::load(bert.path());
  EXPECT_THAT(message_of<DataError>([&] { classifier.classify("w5 <extra>"); }), HasSubstr("has \"<extra>\""));
  EXPECT_NO_THROW(classifier.classify("w5 w6"));

  const WordFolder t5("t5");
  const Translator translator = Translator::load(t5.path());
  EXPECT_THAT(message_of<DataError>([&] { translator.translate("w5 <extra>"); }), HasSubstr("has \"<extra>\""));
  EXPECT_NO_THROW(translator.translate("w5 w6"));
}

TEST(HubSpecialTokens, TokensThatTheModelDoesNotHaveAreSuppressedAnyway) {
  const WordFolder lm("gpt2");
  write_file(lm.path() / "generation_config.json",
             R"({"suppress_tokens": [5, 1000000], "begin_suppress_tokens": [1000001],
                 "bad_words_ids": [[5, 1000002], [5, 6]]})");
  const LanguageModelFolder files = open_language_model_folder(lm.path(), LoadedWeights::mapped);
  EXPECT_THAT(files.sampling.suppressed_tokens, ElementsAre(5));
  EXPECT_TRUE(files.sampling.suppressed_at_begin.empty());
  EXPECT_THAT(files.sampling.suppressed_phrases, ElementsAre(ElementsAre(5, 6)));
}

TEST(HubSpecialTokens, AStreamBeginsWithThoseInFrontOfATextAndHasNoOthers) {
  const WordFolder folder("gpt2");
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(text_frame(*tokenizer, true).before, ElementsAre(1));
  write_file(folder.path() / "text", "w5 w6 w7");
  write_file(folder.path() / "more", "w8");
  const std::vector<std::filesystem::path> files = {folder.path() / "text", folder.path() / "more"};
  const Tokens framed = load_text(files, *tokenizer, {.tokenizer_frames_texts = true}).ids;
  const Tokens plain = load_text(files, *tokenizer).ids;
  ASSERT_EQ(framed.front(), 1);
  EXPECT_EQ(Tokens(framed.begin() + 1, framed.end()), plain);
  EXPECT_THAT(message_of<DataError>([&] {
                write_file(folder.path() / "nothing", "");
                load_text({folder.path() / "nothing"}, *tokenizer, {.tokenizer_frames_texts = true});
              }),
              HasSubstr("there is no text"));
}

// As bert-base-uncased: no file names a special token, and none the class. A copy has no model_type of the hub.
TEST(HubSpecialTokens, AFolderThatNamesNoneHasThoseOfItsClassAndSoHaveCopies) {
  const ChangedFolder bert("bert-classifier");
  std::filesystem::copy_file(source_dir() / "tests/hub/models/bert-classifier/tokenizer.json",
                             bert.folder / "tokenizer.json");
  write_file(bert.folder / "tokenizer_config.json", R"({"do_lower_case": true, "model_max_length": 512})");
  bert.open();
  const TemporaryFolder copies;
  quantize_model_folder(bert.folder.path(), copies / "small", WeightFormat::float32);
  export_model_folder(bert.folder.path(), copies / "same", {});
  export_model_folder(bert.folder.path(), copies / "anew", {.family = "bert"});
  for (const std::filesystem::path& folder : {bert.folder.path(), copies / "small", copies / "same", copies / "anew"}) {
    const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder);
    const SpecialIds& ids = tokenizer->special_ids();
    EXPECT_THAT((Tokens{ids.pad, ids.unk, ids.cls, ids.sep, ids.mask, ids.bos, ids.eos}),
                ElementsAre(0, 1, 2, 3, 4, -1, -1))
        << folder;
    EXPECT_EQ(MaskingOptions::for_tokenizer(*tokenizer).mask_id, 4) << folder;
  }
}

// The class goes before the order of the file's template, which has the language at the end.
TEST(HubSpecialTokens, ASourceLanguageIsWhereTheClassHasIt) {
  const TemporaryFolder folder;
  write_tokenizer(folder.path(), 5, 5);
  Json tokenizer = read_json_file(folder / "tokenizer.json");
  const Json languages = {special_token("eng_Latn", 5), special_token("deu_Latn", 6)};
  for (const Json& language : languages) tokenizer["added_tokens"].push_back(language);
  tokenizer["added_tokens"].erase(3);  // <extra>
  write_json_file(folder / "tokenizer.json", tokenizer);
  const auto framed = [&](const Json& config, const char* language) {
    write_json_file(folder / "tokenizer_config.json", config);
    const std::unique_ptr<Tokenizer> nllb = load_tokenizer(folder.path());
    return framed_source(*nllb, "w3 w4", language_token(*nllb, "source_language", language), nllb->eos_id());
  };
  EXPECT_THAT(framed({{"tokenizer_class", "NllbTokenizer"}}, "deu_Latn"), ElementsAre(6, 3, 4, 2));
  EXPECT_THAT(framed({{"tokenizer_class", "NllbTokenizer"}, {"legacy_behaviour", true}}, "deu_Latn"),
              ElementsAre(3, 4, 2, 6));
}

}  // namespace
}  // namespace attune
