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

class TwoTokenizers : public ::testing::Test {
 protected:
  TwoTokenizers() { config_.generation.special_tokens = true; }
  // The path of a SentencePiece model in a folder of the hub.
  std::string piece_model(const char* model, const char* name, const char* type) {
    const std::filesystem::path folder = folder_ / type;
    make_directories(folder);
    std::filesystem::copy_file(source_dir() / "tests/text/data/pieces" / model, folder / name);
    write_file(folder / "tokenizer_config.json", std::string(R"({"tokenizer_class": ")") + type + "\"}");
    return (folder / name).string();
  }
  std::string refusal(const std::string& source, const std::string& target) {
    config_.data.source_tokenizer = source;
    config_.data.target_tokenizer = target;
    return message_of<ConfigError>([&] { make_tokenizers(config_); });
  }
  TemporaryFolder folder_{memory_folder()};
  RunConfig config_;
};

TEST_F(TwoTokenizers, ThatNoFolderHoldsAreRefusedBeforeTraining) {
  const std::string t5 = piece_model("t5.model", "spiece.model", "T5Tokenizer"),
                    xlmr = piece_model("fairseq.model", "sentencepiece.bpe.model", "XLMRobertaTokenizer"),
                    llama = piece_model("fairseq.model", "tokenizer.model", "LlamaTokenizer"),
                    plain = (source_dir() / "tests/text/data/pieces/fairseq.model").string();
  const std::string why =
      ": a folder holds two different tokenizers only as tokenizer.json, vocabulary.json or plain SentencePiece "
      "models; save_pretrained() of transformers writes a tokenizer.json";
  EXPECT_EQ(refusal(t5, xlmr), "data.source_tokenizer = \"" + t5 + "\"" + why);
  EXPECT_EQ(refusal(plain, llama), "data.target_tokenizer = \"" + llama + "\"" + why);
  config_.data.source_tokenizer = config_.data.target_tokenizer = llama;
  EXPECT_NO_THROW(make_tokenizers(config_)) << "one tokenizer";
}

TEST_F(TwoTokenizers, ThatAFolderHoldsAreReadBack) {
  config_.data.source_tokenizer = (source_dir() / "tests/text/data/pieces/fairseq.model").string();
  config_.data.target_tokenizer = (source_dir() / "tests/text/data/bert.json").string();
  const TokenizerPair given = make_tokenizers(config_);
  save_tokenizers(folder_.path(), *given.source, *given.target);
  const TokenizerPair read = load_tokenizers(folder_.path());
  EXPECT_EQ(read.source->encode("Hello"), given.source->encode("Hello"));
  EXPECT_EQ(read.target->encode("Hello"), given.target->encode("Hello"));
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
