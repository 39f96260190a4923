// attune train for each architecture but translation, which train_process_test.cpp runs: what it says, and what is
// wrong, in one line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli_fixture.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TrainCliTest : public ::testing::Test {
 protected:
  // The arguments of a small run; the model of a preset is made smaller.
  std::vector<std::string> small(const std::string& preset, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"train", "--preset", preset, "--out", (folder_ / preset).string()};
    std::vector<std::string> settings = {"model.d_model=16",    "model.heads=2",          "model.layers=1",
                                         "model.d_ff=32",       "train.steps=4",          "train.log_every=2",
                                         "train.valid_every=2", "train.batch_tokens=200", "schedule.warmup_steps=1",
                                         "train.threads=1"};
    settings.insert(settings.end(), more.begin(), more.end());
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return words;
  }
  std::string messages_of(const std::vector<std::string>& words) const {
    const CommandResult result = run_attune(words);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.errors;
  }
  std::string setting(const std::string& key, const std::string& file) const {
    return key + "=" + (folder_ / file).string();
  }
  TemporaryFolder folder_;
};

TEST_F(TrainCliTest, AClassifier) {
  write_keyword_text(folder_ / "train.tsv", 60, 1);
  write_keyword_text(folder_ / "valid.tsv", 10, 2);
  const std::string text =
      messages_of(small("bert-tiny", {setting("data.train_files", "train.tsv"),
                                      setting("data.valid_files", "valid.tsv"), "data.tokenizer_type=whitespace"}));
  EXPECT_THAT(text, HasSubstr("encoder_classifier, "));
  EXPECT_THAT(text, HasSubstr("a vocabulary of 15, 3 labels: blue, green, red\n"));
  EXPECT_THAT(text, HasSubstr("60 texts, "));
  EXPECT_THAT(text, HasSubstr("; 10 for validation\n"));
  EXPECT_THAT(text, HasSubstr("step 2: validation loss "));
  EXPECT_THAT(text, HasSubstr("  macro-F1 0."));
  EXPECT_THAT(text, Not(HasSubstr("ppl ")));
  EXPECT_THAT(text, HasSubstr("best validation: accuracy "));
  EXPECT_THAT(text, HasSubstr("the model is "));

  write_file(folder_ / "valid.tsv", "purple\ta\n");
  EXPECT_THAT(refusal(run_attune({"train", "--out", (folder_ / "bert-tiny").string(), "--resume"})),
              HasSubstr("valid.tsv: text 1 has the label \"purple\", expected one of blue, green, red"));
}

TEST_F(TrainCliTest, ALanguageModel) {
  rhyme_config(folder_);  // writes the text
  const std::string text =
      messages_of(small("gpt-char", {setting("data.train_files", "rhyme.txt"), "data.tokenizer_type=characters",
                                     "data.valid_fraction=0.1"}));
  EXPECT_THAT(text, HasSubstr("decoder_lm, "));
  EXPECT_THAT(text, HasSubstr("context of "));
  EXPECT_THAT(text, HasSubstr("1 document, "));
  EXPECT_THAT(text, HasSubstr("  perplexity "));
  EXPECT_THAT(text, HasSubstr("  bits per character "));
  EXPECT_THAT(text, HasSubstr("best validation: loss "));
}

TEST_F(TrainCliTest, DescriptionsAreOfTheArchitecture) {
  const std::string translation = run_attune({"train", "--describe-config"}).output;
  EXPECT_THAT(translation, HasSubstr("train_source = []"));
  EXPECT_THAT(translation, Not(HasSubstr("train_files")));
  const std::string language =
      run_attune({"train", "--describe-config", "--set", "model.architecture=\"decoder_lm\""}).output;
  EXPECT_THAT(language, HasSubstr("train_files = []"));
  EXPECT_THAT(language, HasSubstr("[sampling]\n"));
  EXPECT_THAT(language, HasSubstr("context_length = 1024"));
  EXPECT_THAT(language, Not(HasSubstr("train_source")));
  EXPECT_THAT(run_attune({"train", "--describe-config", "--preset", "bert-base"}).output,
              HasSubstr("architecture = \"encoder_classifier\""));
}

TEST_F(TrainCliTest, WhatIsWrongIsSaidInOneLine) {
  EXPECT_THAT(refusal(run_attune({"train"})),
              HasSubstr("a text is needed (--source and --target, --labelled or --text), or a configuration file"));
  EXPECT_THAT(refusal(run_attune({"train", "--preset", "gpt-chr", "--out", "a"})),
              HasSubstr("did you mean \"gpt-char\"?"));
  EXPECT_THAT(refusal(run_attune(small("gpt-char"))), HasSubstr("data.train_files names no file"));
  EXPECT_THAT(refusal(run_attune(small("gpt-char", {"data.train_source=a", "data.train_target=b"}))),
              HasSubstr("data.train_source: architecture = \"decoder_lm\" reads data.train_files"));
}

}  // namespace
}  // namespace attune
