// attune train for each architecture, with a configuration but for translation, which train_process_test.cpp runs:
// what it says, and what is wrong, in one line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli_fixture.h"
#include "tests/train/reverse_task.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::AllOf;
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
              HasSubstr("valid.tsv:1: the label is \"purple\", expected one of blue, green, red"));
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

TEST_F(TrainCliTest, ATextAlone) {
  write_reverse_text(folder_, "train", 300, 2, 5, 1);
  const std::string run = (folder_ / "run").string();
  const std::vector<std::string> words = {"train",
                                          "--source",
                                          (folder_ / "train.src").string(),
                                          "--target",
                                          (folder_ / "train.tgt").string(),
                                          "--out",
                                          run,
                                          "--set",
                                          "train.steps=6",
                                          "--set",
                                          "model.layers=1",
                                          "--set",
                                          "train.threads=1"};
  const std::string text = messages_of(words);
  EXPECT_THAT(text, HasSubstr("chosen for this text:\n"));
  EXPECT_THAT(text, HasSubstr("  model.d_model = 64 "));
  EXPECT_THAT(text, HasSubstr("  data.valid_fraction = 0.1 "));
  EXPECT_THAT(text, Not(HasSubstr("  model.layers = "))) << "it was said";
  EXPECT_THAT(text, HasSubstr("270 pairs, "));
  EXPECT_THAT(text, HasSubstr("; 30 for validation"));
  EXPECT_THAT(text, HasSubstr("is more than the training text yields: the vocabulary has "));
  const RunConfig written = read_run_config(folder_ / "run" / "config.toml");
  EXPECT_EQ(written.model.layers, 1);
  EXPECT_EQ(written.model.d_model, 64);
  EXPECT_EQ(written.train.steps, 6);
  EXPECT_EQ(written.data.valid_fraction, 0.1);

  EXPECT_THAT(messages_of({"train", "--out", run, "--resume", "--set", "train.steps=9"}),
              HasSubstr("going on from step 6"));
  EXPECT_EQ(run_attune({"translate", run + "/model", "a b c"}).status, 0);

  const std::string again = refusal(run_attune(words));
  EXPECT_THAT(again, HasSubstr(run + ": has checkpoints of an earlier run"));
  std::filesystem::remove(folder_ / "train.src");
  EXPECT_EQ(refusal(run_attune(words)), again) << "before the text is read";
}

TEST_F(TrainCliTest, LabelledAndPlainTextAlone) {
  write_keyword_text(folder_ / "train.tsv", 60, 1);
  write_keyword_text(folder_ / "valid.tsv", 10, 2);
  const std::vector<std::string> few = {"--set", "train.steps=3", "--set", "train.threads=1"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), few.begin(), few.end());
    return messages_of(words);
  };
  const std::string labelled = with({"train", "--labelled", (folder_ / "train.tsv").string(), "--valid",
                                     (folder_ / "valid.tsv").string(), "--out", (folder_ / "labelled").string()});
  EXPECT_THAT(labelled, HasSubstr("3 labels: blue, green, red"));
  EXPECT_THAT(labelled, HasSubstr("60 texts, "));
  EXPECT_THAT(labelled, HasSubstr("; 10 for validation"));
  EXPECT_THAT(labelled, Not(HasSubstr("data.valid_fraction")));
  rhyme_config(folder_);  // writes the text
  const std::string plain =
      with({"train", "--text", (folder_ / "rhyme.txt").string(), "--out", (folder_ / "plain").string()});
  EXPECT_THAT(plain, HasSubstr("decoder_lm, "));
  EXPECT_THAT(plain, HasSubstr("  data.tokenizer_type = \"characters\" "));
  EXPECT_THAT(plain, HasSubstr("  bits per character "));
  const std::string described =
      run_attune({"train", "--describe-config", "--text", (folder_ / "rhyme.txt").string(), "--preset", "gpt-char"})
          .output;
  EXPECT_THAT(described, HasSubstr("context_length = 64"));
  EXPECT_THAT(described, HasSubstr("valid_fraction = 0.1"));
}

TEST_F(TrainCliTest, ContradictoryTextIsRefusedInOneLine) {
  const std::string a = (folder_ / "a").string(), config = (folder_ / "run.toml").string();
  write_file(a, "x y\n");
  write_file(config, "");
  const auto refused = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"train", "--out", (folder_ / "run").string()});
    return refusal(run_attune(words));
  };
  EXPECT_THAT(refused({"--source", a}), HasSubstr("--source needs --target"));
  EXPECT_THAT(refused({"--target", a}), HasSubstr("--target needs --source"));
  EXPECT_THAT(refused({"--source", a, a, "--target", a}), HasSubstr("--source names 2 files but --target names 1"));
  EXPECT_THAT(refused({"--source", a, "--target", a, "--text", a}),
              HasSubstr("--source and --text: a run learns from"));
  EXPECT_THAT(refused({"--labelled", a, "--text", a}), HasSubstr("--labelled and --text"));
  EXPECT_THAT(refused({"--valid", a}), HasSubstr("--valid: there is no text to train on"));
  EXPECT_THAT(refused({"--text", a, "--valid-source", a, "--valid-target", a}), HasSubstr("--text is validated on"));
  EXPECT_THAT(refused({"--source", a, "--target", a, "--valid", a}), HasSubstr("--valid: pairs are validated on"));
  EXPECT_THAT(refused({config, "--text", a}), HasSubstr("run.toml --text: what to train on is said twice"));
  EXPECT_THAT(refused({"--resume", "--text", a}), HasSubstr("--resume --text: a run goes on with its own text"));
  EXPECT_THAT(refused({"--text", a, "--set", "data.train_files=b"}), HasSubstr("data.train_files is said twice"));
  EXPECT_THAT(refused({"--text", a, "--preset", "transformer-base"}), HasSubstr("does not read such a text"));
  EXPECT_THAT(refused({"--text", a + "b"}), HasSubstr(a + "b"));
  EXPECT_THAT(refusal(run_attune({"train", "--text", a})), HasSubstr("--out is needed"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
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
              AllOf(HasSubstr("architecture = \"encoder_classifier\""), HasSubstr("# bert-base: Devlin et al. 2019"),
                    HasSubstr("# What differs from the publication: For training from scratch")));
}

TEST_F(TrainCliTest, WhatIsWrongIsSaidInOneLine) {
  EXPECT_THAT(refusal(run_attune({"train"})),
              HasSubstr("a text is needed (--source and --target, --labelled or --text), or a configuration file"));
  EXPECT_EQ(refusal(run_attune({"train", "--resume"})), "attune: --out is needed: the folder of the run to resume\n");
  EXPECT_THAT(refusal(run_attune({"train", "--preset", "gpt-chr", "--out", "a"})),
              HasSubstr("did you mean \"gpt-char\"?"));
  EXPECT_THAT(refusal(run_attune(small("gpt-char"))), HasSubstr("data.train_files names no file"));
  EXPECT_THAT(refusal(run_attune(small("gpt-char", {"data.train_source=a", "data.train_target=b"}))),
              HasSubstr("data.train_source: architecture = \"decoder_lm\" reads data.train_files"));
}

}  // namespace
}  // namespace attune
