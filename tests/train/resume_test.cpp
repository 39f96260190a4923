#include "attune/train/trainer.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "attune/io/checkpoint.h"
#include "attune/io/parameter_file.h"
#include "attune/models/build.h"
#include "tests/support/errors.h"
#include "tests/train/reverse_training.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ResumeTest : public ReverseTraining {};

struct ResumeCase {
  const char* name;
  std::function<void(RunConfig&)> change;
};
void PrintTo(const ResumeCase& c, std::ostream* out) {
  *out << c.name;
}

class Resume : public ResumeTest, public ::testing::WithParamInterface<ResumeCase> {};

TEST_P(Resume, ContinuesBitForBit) {
  GetParam().change(config_);
  expect_resume_is_exact(config_, folder_);
}

INSTANTIATE_TEST_SUITE_P(Trainer, Resume,
                         ::testing::Values(ResumeCase{"plain", [](RunConfig&) {}},
                                           ResumeCase{"accumulation_and_moving_average",
                                                      [](RunConfig& c) {
                                                        c.train.accumulate = 3;
                                                        c.train.moving_average = 0.9;
                                                        c.optimizer = {.kind = OptimizerKind::adamw,
                                                                       .weight_decay = 0.1,
                                                                       .clip_norm = 0.5};
                                                      }},
                                           ResumeCase{"latent_attention_and_mean_of_checkpoints",
                                                      [](RunConfig& c) {
                                                        c.model.encoder_attention = c.model.decoder_attention =
                                                            c.model.cross_attention = MultiHeadLatent{};
                                                        c.train.average_checkpoints = 3;
                                                      }},
                                           ResumeCase{"guided_alignment",
                                                      [](RunConfig& c) {
                                                        const auto source =
                                                            std::filesystem::path(c.data.train_source.at(0));
                                                        write_reversed_alignments(source);
                                                        c.data.train_alignments = {source.string() + ".align"};
                                                        c.train.checkpoint_activations = true;
                                                      }},
                                           ResumeCase{"subword_sampling",
                                                      [](RunConfig& c) {
                                                        c.data.tokenizer_type = TokenizerKind::bpe;
                                                        c.data.vocab_size = 20;
                                                        c.train.subword_sampling = 0.3;
                                                      }},
                                           ResumeCase{"layer_dropout",
                                                      [](RunConfig& c) {
                                                        c.train.layer_dropout = 0.4;
                                                        c.train.checkpoint_activations = true;
                                                      }},
                                           ResumeCase{"r_drop", [](RunConfig& c) { c.train.r_drop = 3; }},
                                           ResumeCase{"word_dropout", [](RunConfig& c) { c.train.word_dropout = 0.2; }},
                                           ResumeCase{"sentence_piece_for_each_side",
                                                      [](RunConfig& c) {
                                                        c.data.tokenizer_type = TokenizerKind::unigram;
                                                        c.data.vocab_size = 20;
                                                        c.data.joint_vocab = false;
                                                        c.train.best_metric = ValidationMetric::loss;
                                                      }}),
                         [](const auto& test) { return test.param.name; });

TEST_F(ResumeTest, ResumesBehindATornCheckpoint) {
  config_.train.checkpoint_every = 10;
  train(config_, folder_ / "whole");
  train(config_, folder_ / "torn");
  fs::resize_file(checkpoint_file(folder_ / "torn", 20), 5000);
  fs::rename(folder_ / "torn" / "model", folder_ / "old_model");
  const TrainedRun rest = train(config_, folder_ / "torn", true);
  EXPECT_EQ(rest.seen.start.step, 10);
  ASSERT_EQ(rest.seen.messages.size(), 1);
  EXPECT_THAT(rest.seen.messages[0], AllOf(HasSubstr("step-00000020.safetensors: "),
                                           HasSubstr("; it is set aside as step-00000020.safetensors.damaged")));
  EXPECT_TRUE(fs::exists(folder_ / "torn" / "checkpoints" / "step-00000020.safetensors.damaged"));
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "torn", 20)), tensors_of(checkpoint_file(folder_ / "whole", 20)));
  EXPECT_EQ(metrics_of(folder_ / "torn"), metrics_of(folder_ / "whole"));
  EXPECT_EQ(tensors_of(folder_ / "torn" / "model" / "model.safetensors"),
            tensors_of(folder_ / "old_model" / "model.safetensors"));

  for (const int64_t step : {10, 20}) fs::resize_file(checkpoint_file(folder_ / "torn", step), 5000);
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "torn", true); }),
              HasSubstr("(no other checkpoint is intact)"));
}

TEST_F(ResumeTest, ADamagedCheckpointIsNotInTheMean) {
  config_.train.checkpoint_every = 5;
  config_.train.keep_checkpoints = 4;
  config_.train.average_checkpoints = 3;
  train(config_, folder_ / "run");
  fs::resize_file(checkpoint_file(folder_ / "run", 15), 5000);
  fs::remove_all(folder_ / "run" / "model");
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_EQ(rest.seen.messages.size(), 1);
  EXPECT_THAT(rest.seen.messages[0], HasSubstr("it is set aside as step-00000015.safetensors.damaged"));
  const auto model = build_model(rest.seen.start.model, 1);
  mean_of_checkpoints(std::vector<fs::path>{checkpoint_file(folder_ / "run", 5), checkpoint_file(folder_ / "run", 10),
                                            checkpoint_file(folder_ / "run", 20)},
                      *model);
  save_parameters(folder_ / "mean.safetensors", *model);
  EXPECT_EQ(tensors_of(folder_ / "run" / "model" / "model.safetensors"), tensors_of(folder_ / "mean.safetensors"));
}

TEST_F(ResumeTest, WhatChangesTheFiguresOfValidationsForgetsTheBest) {
  config_.train.valid_every = 10;
  config_.train.best_metric = ValidationMetric::loss;
  train(config_, folder_ / "run");
  const auto resumed = [&](const std::function<void(RunConfig&)>& change) {
    config_.train.steps += 10;
    change(config_);
    return train(config_, folder_ / "run", true).seen.messages;
  };
  EXPECT_THAT(resumed([](RunConfig&) {}), SizeIs(0));
  EXPECT_THAT(resumed([](RunConfig& c) { c.train.label_smoothing = 0.3; }),
              ::testing::Contains(HasSubstr("is forgotten: train.label_smoothing changed from ")));
  EXPECT_THAT(resumed([](RunConfig& c) { c.train.valid_sentences = 5; }),
              ElementsAre(HasSubstr("is forgotten: train.valid_sentences changed from 0 to 5")));
  EXPECT_THAT(resumed([&](RunConfig&) { write_reverse_text(folder_, "valid", 20, 2, 5, 9); }),
              ElementsAre(HasSubstr("is forgotten: the text for validation changed")));
}

TEST_F(ResumeTest, ABestModelOfAPartThatWasGivenUpIsNamed) {
  config_.train.valid_every = 5;
  config_.train.checkpoint_every = 10;
  const TrainedRun run = train(config_, folder_ / "run");
  ASSERT_TRUE(run.result.best_step);
  write_file(folder_ / "run" / "best" / "validation.json", "{\"step\": 17}");
  EXPECT_THAT(train(config_, folder_ / "run", true).seen.messages,
              ElementsAre(HasSubstr("holds the model of step 17, from before the run was resumed; that of step ")));
}

// A run that is ended before its first checkpoint has nothing that another run in its folder keeps.
TEST_F(ResumeTest, ARunThatBeginsAgainKeepsNothingOfTheOneBefore) {
  config_.train.valid_every = 5;
  const auto end = [](const StepReport& report) {
    if (report.step == 7) throw std::runtime_error("ends");
  };
  EXPECT_THROW(train(config_, folder_ / "run", false, end), std::runtime_error);
  ASSERT_TRUE(fs::exists(folder_ / "run" / "best"));
  config_.model.d_ff = 128;
  config_.data.valid_source = config_.data.valid_target = {};
  train(config_, folder_ / "run");
  train(config_, folder_ / "new");
  EXPECT_FALSE(fs::exists(folder_ / "run" / "best"));
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "new"));
}

TEST_F(ResumeTest, RefusesAnotherRun) {
  config_.train.steps = 2;
  train(config_, folder_ / "run");
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run"); }), HasSubstr("use --resume"));
  const auto refusal = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig other = config_;
    change(other);
    return message_of<ConfigError>([&] { train(other, folder_ / "run", true); });
  };
  EXPECT_THAT(refusal([](RunConfig& c) { c.model.d_ff = 128; }),
              HasSubstr("model.d_ff = 128: the run to be resumed has 64"));
  EXPECT_THAT(refusal([](RunConfig& c) { c.model.norm = NormPlacement::post; }),
              HasSubstr("model.norm = \"post\": the run to be resumed has \"pre\""));
  EXPECT_THAT(refusal([](RunConfig& c) { c.train.seed = 6; }),
              HasSubstr("train.seed = 6: the run to be resumed has 5"));
  EXPECT_THAT(refusal([](RunConfig& c) { c.train.moving_average = 0.9; }),
              HasSubstr("train.moving_average = \"on\": the run to be resumed has \"off\""));
  // The same pairs in another order: another epoch.
  for (const std::string& file : {config_.data.train_source.front(), config_.data.train_target.front()}) {
    std::vector<std::string> lines = read_lines(file);
    std::ranges::reverse(lines);
    write_file(file, fmt::format("{}\n", fmt::join(lines, "\n")));
  }
  EXPECT_THAT(refusal([](RunConfig&) {}), HasSubstr("data.train_source: the text is another than that of the run"));
  write_reverse_text(folder_, "train", 199, 2, 5, 1);
  EXPECT_THAT(refusal([](RunConfig&) {}), HasSubstr("data.train_source: the text has 199 pairs"));
}

TEST_F(ResumeTest, RefusesOtherTokenizers) {
  config_.train.steps = 2;
  train(config_, folder_ / "run");
  const auto refusal = [&](const std::function<void(DataConfig&)>& change) {
    RunConfig other = config_;
    change(other.data);
    return message_of<ConfigError>([&] { train(other, folder_ / "run", true); });
  };
  EXPECT_THAT(refusal([](DataConfig& d) { d.vocab_size = 100; }),
              HasSubstr("data.vocab_size = 100: the run to be resumed was begun with 8000 and keeps its tokenizers"));
  EXPECT_THAT(refusal([](DataConfig& d) { d.tokenizer_type = TokenizerKind::bpe; }),
              HasSubstr("data.tokenizer_type = \"bpe\": the run to be resumed was begun with \"whitespace\""));
  EXPECT_THAT(refusal([](DataConfig& d) { d.joint_vocab = false; }), HasSubstr("data.joint_vocab = false"));
  EXPECT_THAT(refusal([](DataConfig& d) { d.subword_marker = "@@"; }), HasSubstr("data.subword_marker = \"@@\""));
  EXPECT_THAT(refusal([](DataConfig& d) { d.tokenizer = "other.json"; }),
              HasSubstr("data.tokenizer = \"other.json\": the run to be resumed was begun with \"\""));
  EXPECT_THAT(refusal([](DataConfig& d) { d.source_tokenizer = d.target_tokenizer = "other.json"; }),
              HasSubstr("data.source_tokenizer = \"other.json\""));

  // What only says how a tokenizer is to be learnt means nothing where one was given.
  config_.data.tokenizer = (folder_ / "run" / "vocabulary.json").string();
  train(config_, folder_ / "given");
  config_.data.vocab_size = 100;
  EXPECT_TRUE(train(config_, folder_ / "given", true).seen.messages.empty());
}

TEST_F(ResumeTest, MayChangeHowLongAndHowFastAndSaysSo) {
  config_.train.steps = 2;
  train(config_, folder_ / "run");
  config_.train.steps = 4;
  EXPECT_TRUE(train(config_, folder_ / "run", true).seen.messages.empty());  // a constant rate asks for no length
  config_.train.steps = 6;
  config_.train.accumulate = 2;
  config_.train.label_smoothing = 0;
  config_.schedule.learning_rate = 1e-3;
  config_.optimizer.beta_2 = 0.999;
  config_.optimizer.kind = OptimizerKind::adamw;
  const TrainedRun changed = train(config_, folder_ / "run", true);
  EXPECT_EQ(changed.result.step, 6);
  EXPECT_THAT(changed.seen.messages,
              ElementsAre("optimizer.kind changed from \"adam\" to \"adamw\" in this part of the run",
                          "optimizer.beta_2 changed from 0.98 to 0.999 in this part of the run",
                          "schedule.learning_rate changed from 0.003 to 0.001 in this part of the run",
                          "train.accumulate changed from 1 to 2 in this part of the run",
                          "train.label_smoothing changed from 0.1 to 0.0 in this part of the run"));
  EXPECT_EQ(read_run_config(folder_ / "run" / "config.toml").train.steps, 6);
  const TrainedRun finished = train(config_, folder_ / "run", true);
  EXPECT_EQ(finished.seen.steps.size(), 0);  // there is nothing left to do
  EXPECT_TRUE(finished.seen.messages.empty()) << "a change is said once";

  config_.schedule.kind = ScheduleKind::linear;
  config_.train.steps = 14;
  EXPECT_THAT(train(config_, folder_ / "run", true).seen.messages, SizeIs(1));  // the kind
  config_.train.steps = 16;
  EXPECT_THAT(train(config_, folder_ / "run", true).seen.messages,
              ElementsAre("train.steps changed from 14 to 16 in this part of the run"))
      << "the rate ends there";
}

TEST_F(ResumeTest, WhatTheEndOfARunHasLoggedIsNotLoggedAgain) {
  config_.train.steps = 12;  // logged every 5: the last entry is of two steps
  config_.train.valid_every = config_.train.checkpoint_every = 6;
  train(config_, folder_ / "run");
  const std::vector<std::string> metrics = metrics_of(folder_ / "run");
  train(config_, folder_ / "run", true);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics);

  config_.train.steps = 13;
  const TrainedRun longer = train(config_, folder_ / "run", true);
  config_.train.log_every = 1;
  const TrainedRun whole = train(config_, folder_ / "whole");
  ASSERT_EQ(longer.seen.steps.size(), 1u);
  ASSERT_EQ(whole.seen.steps.size(), 13u);
  EXPECT_EQ(longer.seen.steps[0].loss, whole.seen.steps[12].loss) << "of the new step alone";
}

TEST_F(ResumeTest, AutomaticPrecisionIsChosenOnceForTheWholeRun) {
  config_.train.steps = 2;
  config_.train.precision = PrecisionChoice::automatic;
  const PrecisionChoice here = choice_of(resolved(PrecisionChoice::automatic));
  const TrainedRun begun = train(config_, folder_ / "run");
  ASSERT_FALSE(begun.seen.messages.empty());
  EXPECT_THAT(begun.seen.messages[0], HasSubstr("train.precision = \"auto\": " + enum_name(here) + ", "));
  EXPECT_EQ(read_run_config(folder_ / "run" / "config.toml").train.precision, here);

  // One of the two could have begun on another machine alone.
  for (const auto precision : {PrecisionChoice::float32, PrecisionChoice::bfloat16}) {
    const fs::path run = folder_ / enum_name(precision);
    config_.train.steps = 2;
    config_.train.precision = precision;
    train(config_, run);
    config_.train.steps = 4;
    config_.train.precision = PrecisionChoice::automatic;
    const TrainedRun rest = train(config_, run, true);
    ASSERT_FALSE(rest.seen.messages.empty());
    EXPECT_EQ(rest.seen.messages[0], "train.precision = \"auto\": " + enum_name(precision) + ", as the run began");
    EXPECT_EQ(read_run_config(run / "config.toml").train.precision, precision);
  }
}

TEST_F(ResumeTest, ABestModelThatWasRemovedIsNoticedAtOnce) {
  config_.train.steps = 10;
  config_.train.valid_every = 5;
  config_.train.patience = 100;
  train(config_, folder_ / "run");
  fs::remove_all(folder_ / "run" / "best");
  config_.train.steps = 12;
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_EQ(rest.seen.messages.size(), 1u);
  EXPECT_THAT(rest.seen.messages[0], AllOf(HasSubstr("the best model so far, of step "), HasSubstr("is forgotten: "),
                                           HasSubstr("best/model.safetensors")));
  ASSERT_EQ(rest.seen.validations.size(), 2u);  // of the state that was resumed, and at the end
  EXPECT_EQ(rest.seen.validations[0].step, 10);
  EXPECT_TRUE(rest.seen.validations[0].best);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "best" / "model.safetensors"));
  EXPECT_TRUE(train(config_, folder_ / "run", true).seen.messages.empty());

  // A file that is there but is not the model is as good as none.
  write_file(folder_ / "run" / "best" / "model.safetensors", "torn");
  EXPECT_EQ(train(config_, folder_ / "run", true).seen.messages.size(), 1u);
}

TEST_F(ResumeTest, AnotherMetricMakesNoUseOfTheOldBest) {
  config_.train.steps = 4;
  config_.train.valid_every = 2;
  train(config_, folder_ / "run");
  config_.train.best_metric = ValidationMetric::loss;
  config_.train.steps = 5;
  const TrainedRun rest = train(config_, folder_ / "run", true);
  EXPECT_THAT(rest.seen.messages, ElementsAre(HasSubstr("train.best_metric changed from bleu to loss")));
  ASSERT_FALSE(rest.seen.validations.empty());
  EXPECT_TRUE(rest.seen.validations[0].best);
  double least = 1e30;
  for (const ValidationReport& report : rest.seen.validations) least = std::min(least, report.loss.loss);
  EXPECT_EQ(rest.result.best_value, least);
}

TEST_F(ResumeTest, AFolderOfSomebodyElseIsRefusedAndStaysAsItIs) {
  fs::create_directory(folder_ / "other");
  write_file(folder_ / "other" / "config.toml", "mine");
  write_file(folder_ / "other" / "tokenizer.json", "mine");
  for (const bool resume : {false, true})
    EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "other", resume); }),
                HasSubstr("other: has other files in it ("));
  EXPECT_EQ(read_file(folder_ / "other" / "config.toml"), "mine");
  EXPECT_EQ(read_file(folder_ / "other" / "tokenizer.json"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "other"), fs::directory_iterator()), 2);
}

TEST_F(ResumeTest, ARenamedCheckpointIsRefused) {
  config_.train.checkpoint_every = 10;
  train(config_, folder_ / "run");
  fs::rename(checkpoint_file(folder_ / "run", 10), checkpoint_file(folder_ / "run", 99));
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", true); }),
              HasSubstr("step-00000099.safetensors: is the checkpoint of step 10"));
  EXPECT_TRUE(fs::exists(checkpoint_file(folder_ / "run", 99)));
}

TEST_F(ResumeTest, StateThatNoRunComesToIsRefused) {
  train(config_, folder_ / "run");
  const fs::path file = checkpoint_file(folder_ / "run", 20);
  const SafetensorsReader reader(file);
  Checkpoint checkpoint;
  for (const std::string& name : reader.names()) checkpoint.tensors.push_back({name, reader.load(name)});
  const Json good = checkpoint_state(reader);
  const std::vector<std::pair<std::string, Json>> wrong = {
      {"/training/step", -1},          {"/training/epoch", -5},
      {"/training/seconds", -1.0},     {"/training/seconds", nullptr},
      {"/training/best_step", 21},     {"/training/last_validation", 1000},
      {"/training/tokens", -1},        {"/training/least_loss", nullptr},
      {"/training/window/tokens", -1}, {"/training/without_improvement", int64_t{1} << 60},
      {"/training/best_step", -1},     {"/training/last_validation", -1},
      {"/training/best_value", -1.0},  {"/training/least_loss", -1.0},
      {"/training/seconds", 1e300},    {"/training/window/seconds", 1e300},
      {"/training/window/loss", -1.0}, {"/training/window/nll", -1.0}};
  for (const auto& [field, value] : wrong) {
    checkpoint.state = good;
    checkpoint.state[Json::json_pointer(field)] = value;
    write_checkpoint(file, checkpoint);
    const std::string name = field.substr(field.rfind('/') + 1);
    EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", true); }),
                AllOf(HasSubstr("step-00000020.safetensors: training"), HasSubstr(name)));
  }
  checkpoint.state = good;
  checkpoint.state["setings"] = Json::object();
  write_checkpoint(file, checkpoint);
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", true); }),
              HasSubstr("step-00000020.safetensors: the trainer's state has an unknown key \"setings\""));
}

TEST_F(ResumeTest, AValueOfAnotherTypeIsAnErrorOfTheFile) {
  config_.train.steps = 2;
  train(config_, folder_ / "run");
  const fs::path file = checkpoint_file(folder_ / "run", 2);
  const auto refusal = [&](const char* section, const char* key, const Json& value) {
    Json before;
    change_state(file, [&](Json& state) { before = std::exchange(state.at(section).at(key), value); });
    const std::string message = message_of<FileError>([&] { train(config_, folder_ / "run", true); });
    change_state(file, [&](Json& state) { state.at(section).at(key) = before; });
    return message;
  };
  EXPECT_EQ(refusal("training", "step", "x"), file.string() + ": training.step: is \"x\", needs a whole number");
  EXPECT_EQ(refusal("corpus", "tokens", "x"), file.string() + ": corpus.tokens: is \"x\", needs a whole number");
  EXPECT_EQ(refusal("run", "model.heads", "x"), file.string() + ": run.model.heads: is \"x\", needs a whole number");
  config_.train.precision = PrecisionChoice::automatic;
  EXPECT_THAT(refusal("settings", "train.precision", "x"),
              HasSubstr(file.string() + ": settings.train.precision: is \"x\", needs one of "));
}

TEST_F(ResumeTest, StateOfARunWithoutValidationsOrWithNegativeCorrelationGoesOn) {
  config_.data.valid_source = config_.data.valid_target = {};
  train(config_, folder_ / "run");
  const fs::path file = checkpoint_file(folder_ / "run", 20);
  Checkpoint checkpoint;
  {
    const SafetensorsReader reader(file);
    for (const std::string& name : reader.names()) checkpoint.tensors.push_back({name, reader.load(name)});
    checkpoint.state = checkpoint_state(reader);
  }
  Json& training = checkpoint.state.at("training");
  EXPECT_EQ(training.at("best_step"), -1);
  EXPECT_EQ(training.at("last_validation"), -1);
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 20);
  training["best_step"] = training["last_validation"] = 20;
  training["best_metric"] = "pearson";
  training["best_value"] = -0.5;
  write_checkpoint(file, checkpoint);
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 20);
}

// Checkpoints of earlier versions do not have it.
TEST_F(ResumeTest, TheLeastLossGoesOnAndMayBeMissing) {
  config_.train.valid_every = 10;
  config_.train.checkpoint_every = 10;
  const TrainedRun run = train(config_, folder_ / "run");
  const fs::path file = checkpoint_file(folder_ / "run", 20);
  Checkpoint checkpoint;
  {
    const SafetensorsReader reader(file);
    for (const std::string& name : reader.names()) checkpoint.tensors.push_back({name, reader.load(name)});
    checkpoint.state = checkpoint_state(reader);
  }
  ASSERT_EQ(run.seen.validations.size(), 2u);
  Json& training = checkpoint.state.at("training");
  EXPECT_EQ(training.at("least_loss").get<double>(),
            std::min(run.seen.validations[0].loss.loss, run.seen.validations[1].loss.loss));
  training.erase("least_loss");
  write_checkpoint(file, checkpoint);
  config_.train.steps = 21;
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 21);
}

TEST_F(ResumeTest, BeginsWhereThereIsNothing) {
  config_.train.steps = 1;
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 1);
}

}  // namespace
}  // namespace attune
