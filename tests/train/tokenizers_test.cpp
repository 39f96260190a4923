#include "attune/train/tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "attune/base/file.h"
#include "attune/train/config.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Tokenizers, WithoutTheTokensAroundATextAreRefusedByName) {
  const std::string bert = (source_dir() / "tests/text/data/bert.json").string();
  RunConfig config;
  config.model.architecture = Architecture::encoder_classifier;
  config.data.tokenizer = bert;
  EXPECT_THAT(message_of<ConfigError>([&] { given_tokenizer(config); }),
              HasSubstr("data.tokenizer = \"" + bert + "\": has no bos token, which a text gets here"));
  config.data.tokenizer_frames_texts = true;
  EXPECT_EQ(given_tokenizer(config)->kind(), "Hugging Face");

  RunConfig pairs;
  pairs.data.source_tokenizer = pairs.data.target_tokenizer = bert;
  EXPECT_THAT(message_of<ConfigError>([&] { make_tokenizers(pairs); }),
              HasSubstr("data.source_tokenizer = \"" + bert + "\": has no bos token"));
  pairs.generation.special_tokens = true;
  EXPECT_NE(make_tokenizers(pairs).source, nullptr);
}

TEST(Tokenizers, AreLearntFromPromptsAndAnswersWithoutTheirJson) {
  const TemporaryFolder folder(memory_folder());
  write_file(folder / "answers.jsonl", R"({"prompt": "caf\u00e9?", "answer": "oui\nnon"})"
                                       "\n");
  RunConfig config = default_config(Architecture::decoder_lm);
  config.data.train_files = {(folder / "answers.jsonl").string()};
  config.data.text_unit = TextUnit::answer;
  config.data.tokenizer_type = TokenizerKind::characters;
  const auto characters = make_tokenizer(config, folder.path());
  EXPECT_THAT(characters->encode("café?oui\nnon"), Not(Contains(characters->unk_id())));
  EXPECT_THAT(characters->encode("{"), ElementsAre(characters->unk_id()));

  config.data.tokenizer_type = TokenizerKind::whitespace;
  const auto words = make_tokenizer(config, folder.path());
  EXPECT_THAT(words->encode("café? oui non"), Not(Contains(words->unk_id())));
  EXPECT_EQ(words->vocab_size(), 4 + 3);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "the copy is gone";
}

}  // namespace
}  // namespace attune
