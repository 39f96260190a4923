#include "attune/train/tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/train/config.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace attune
