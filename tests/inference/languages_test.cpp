#include "attune/inference/languages.h"

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

// Of pieces, "or" among them, and languages.
std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& name, const std::vector<std::string>& languages) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(source_dir() / "tests/text/data/pieces/fairseq.model", folder / "sentencepiece.bpe.model");
  write_file(folder / "vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "or": 4})");
  write_file(folder / "tokenizer_config.json",
             json{{"tokenizer_class", name}, {"additional_special_tokens", languages}}.dump());
  return load_tokenizers(folder.path()).source;
}

TEST(Languages, AWordOfTheVocabularyIsNoLanguage) {
  const auto m2m100 = tokenizer_of("M2M100Tokenizer", {"__en__", "__or__"});
  EXPECT_EQ(m2m100->token_id("or"), 4);
  for (const char* language : {"or", "__or__"}) EXPECT_EQ(language_token(*m2m100, "target_language", language), 6);
  const auto mbart = tokenizer_of("MBart50Tokenizer", {"en_XX", "or_IN"});
  EXPECT_GE(mbart->token_id("or"), 0);
  EXPECT_EQ(language_token(*mbart, "target_language", "or_IN"), mbart->token_id("or_IN"));
  EXPECT_THAT(message_of<ConfigError>([&] { language_token(*mbart, "target_language", "or"); }),
              HasSubstr("target_language: the vocabulary has no token for the language \"or\""));
}

TEST(Languages, AVocabularyWithoutSpecialTokensMayHaveAnyWordForOne) {
  const auto pieces = tokenizer_of("LlamaTokenizer", {});
  EXPECT_EQ(language_token(*pieces, "target_language", "or"), pieces->token_id("or"));
}

}  // namespace
}  // namespace attune
