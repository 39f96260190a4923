#include "attune/train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "attune/inference/translator.h"
#include "attune/io/checkpoint.h"
#include "tests/support/errors.h"
#include "tests/train/reverse_task.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    write_reverse_text(folder_, "train", 200, 2, 5, 1);
    write_reverse_text(folder_, "valid", 20, 2, 5, 2);
    config_ = reverse_config(folder_);
  }
  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(TrainerTest, LearnsToReverse) {
  write_reverse_text(folder_, "train", 2000, 2, 5, 1);
  config_.model.layers = 2;
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.schedule = {.kind = ScheduleKind::linear, .learning_rate = 4e-3, .warmup_steps = 50};
  config_.train = {.steps = 600, .batch_tokens = 512, .label_smoothing = 0.05, .log_every = 50, .valid_every = 200};
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::steps);
  EXPECT_GT(run.seen.steps.front().nll, 1.8);
  EXPECT_LT(run.seen.steps.back().nll, 0.1);
  ASSERT_EQ(run.seen.validations.size(), 3);
  EXPECT_GT(run.seen.validations.back().bleu.value(), 98);
  EXPECT_GT(run.seen.validations.back().loss.accuracy, 0.99);
  EXPECT_LT(run.seen.validations.back().loss.perplexity, 1.1);

  // The folder alone translates, and as well as was reported.
  const Translator translator = Translator::load(folder_ / "run" / "model");
  EXPECT_EQ(translator.translate(std::vector<std::string>{"a b c d", "h g"})[0].text(), "d c b a");
}

TEST_F(TrainerTest, ReportsWhatItDoes) {
  config_.train.steps = 12;
  config_.train.valid_every = 6;
  config_.train.checkpoint_every = 4;
  config_.train.keep_checkpoints = 2;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.model.source_vocab, 12);
  EXPECT_EQ(run.seen.start.model.target_vocab, 12);
  EXPECT_EQ(run.seen.start.corpus.size.examples, 200);
  EXPECT_EQ(run.seen.start.corpus.validation_examples, 20);
  EXPECT_EQ(run.seen.start.total_steps, 12);
  TransformerConfig model = config_.model;
  model.source_vocab = model.target_vocab = 12;
  EXPECT_EQ(run.seen.start.parameters, count_parameters(model).total());
  ASSERT_EQ(run.seen.steps.size(), 12);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(run.seen.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(run.seen.steps[i].logged, (i + 1) % 5 == 0);
    EXPECT_GT(run.seen.steps[i].tokens_per_second, 0);
    EXPECT_GT(run.seen.steps[i].gradient_norm, 0);
  }
  EXPECT_DOUBLE_EQ(run.seen.steps[4].learning_rate, 1.5e-3);
  ASSERT_EQ(run.seen.validations.size(), 2);
  EXPECT_EQ(run.seen.validations[1].step, 12);
  ASSERT_EQ(run.seen.validations[0].samples.size(), 3);
  EXPECT_EQ(run.seen.checkpoints.size(), 3);
  EXPECT_FALSE(fs::exists(checkpoint_file(folder_ / "run", 4)));
  EXPECT_TRUE(fs::exists(checkpoint_file(folder_ / "run", 8)));
  EXPECT_TRUE(fs::exists(checkpoint_file(folder_ / "run", 12)));
  EXPECT_EQ(read_run_config(folder_ / "run" / "config.toml"), config_);
  const auto metrics = metrics_of(folder_ / "run");
  ASSERT_EQ(metrics.size(), 6);  // the start, steps 5, 10 and 12, validations at 6 and 12
  EXPECT_THAT(metrics[0], HasSubstr("{\"step\":0,\"parameters\":"));
  EXPECT_THAT(metrics[1], AllOf(HasSubstr("\"step\":5,\"loss\":"), HasSubstr("\"learning_rate\":0.0015")));
  EXPECT_THAT(metrics[2], AllOf(HasSubstr("\"step\":6,\"valid_loss\":"), HasSubstr("\"valid_bleu\":")));
}

// Steps 1 to 20 at once, or 1 to 10 and later the rest.
struct ResumeCase {
  const char* name;
  std::function<void(RunConfig&)> change;
};
void PrintTo(const ResumeCase& c, std::ostream* out) {
  *out << c.name;
}

class Resume : public TrainerTest, public ::testing::WithParamInterface<ResumeCase> {};

TEST_P(Resume, ContinuesBitForBit) {
  config_.train.valid_every = 5;
  config_.train.checkpoint_every = 5;
  GetParam().change(config_);
  const TrainedRun whole = train(config_, folder_ / "whole");
  RunConfig half = config_;
  half.train.steps = 10;
  train(half, folder_ / "parts");
  const TrainedRun rest = train(config_, folder_ / "parts", true);
  EXPECT_EQ(rest.seen.start.step, 10);
  EXPECT_EQ(rest.seen.steps.size(), 10);
  EXPECT_EQ(rest.result.step, 20);
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "parts", 20)), tensors_of(checkpoint_file(folder_ / "whole", 20)));
  EXPECT_EQ(tensors_of(folder_ / "parts" / "model" / "model.safetensors"),
            tensors_of(folder_ / "whole" / "model" / "model.safetensors"));
  EXPECT_EQ(metrics_of(folder_ / "parts"), metrics_of(folder_ / "whole"));
  EXPECT_EQ(rest.result.best_step, whole.result.best_step);
  EXPECT_EQ(rest.result.best_value, whole.result.best_value);
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
                                           ResumeCase{"sentence_piece_for_each_side",
                                                      [](RunConfig& c) {
                                                        c.data.tokenizer_type = TokenizerKind::unigram;
                                                        c.data.vocab_size = 20;
                                                        c.data.joint_vocab = false;
                                                        c.train.best_metric = ValidationMetric::loss;
                                                      }}),
                         [](const auto& test) { return test.param.name; });

TEST_F(TrainerTest, ResumesBehindATornCheckpoint) {
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

TEST_F(TrainerTest, AStopRequestEndsWithACheckpoint) {
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  seen.after_step = [&](const StepReport& report) { stop = report.step == 7; };
  const TrainingResult result = Trainer(config_, folder_ / "run", seen, stop).run(false);
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.step, 7);
  ASSERT_EQ(seen.checkpoints.size(), 1);
  EXPECT_EQ(seen.checkpoints[0], checkpoint_file(folder_ / "run", 7));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "model"));
  const TrainedRun rest = train(config_, folder_ / "run", true);
  EXPECT_EQ(rest.seen.start.step, 7);
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "run", 20)), tensors_of(checkpoint_file(folder_ / "whole", 20)));
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

// The flag rises while the validation translates.
TEST_F(TrainerTest, AStopDuringAValidationIsNoticedThere) {
  config_.train.valid_every = 10;
  config_.generation.max_length = 200;
  write_reverse_text(folder_, "valid", 4000, 5, 5, 2);
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  std::thread stopper;
  seen.after_step = [&](const StepReport& report) {
    if (report.step != 10) return;
    stopper = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stop = true;
    });
  };
  const TrainingResult result = Trainer(config_, folder_ / "run", seen, stop).run(false);
  stopper.join();
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.step, 10);
  EXPECT_TRUE(seen.validations.empty());
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_FALSE(rest.seen.validations.empty());
  EXPECT_EQ(rest.seen.validations[0].step, 10);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

TEST_F(TrainerTest, AStopRightBeforeAValidationLosesNothing) {
  config_.train.valid_every = 10;
  train(config_, folder_ / "whole");
  std::atomic<bool> stop{false};
  Recorder seen;
  seen.after_step = [&](const StepReport& report) { stop = report.step == 10; };
  Trainer(config_, folder_ / "run", seen, stop).run(false);
  EXPECT_TRUE(seen.validations.empty());
  const TrainedRun rest = train(config_, folder_ / "run", true);
  ASSERT_EQ(rest.seen.validations.size(), 2);
  EXPECT_EQ(rest.seen.validations[0].step, 10);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

TEST_F(TrainerTest, ResumeRefusesAnotherRun) {
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
  write_reverse_text(folder_, "train", 199, 2, 5, 1);
  EXPECT_THAT(refusal([](RunConfig&) {}), HasSubstr("data.train_source: the text has 199 pairs"));
}

TEST_F(TrainerTest, ResumeRefusesOtherTokenizers) {
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

TEST_F(TrainerTest, ResumeMayChangeHowLongAndHowFastAndSaysSo) {
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

TEST_F(TrainerTest, ABestModelThatWasRemovedIsNoticedAtOnce) {
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

TEST_F(TrainerTest, AnotherMetricMakesNoUseOfTheOldBest) {
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

TEST_F(TrainerTest, AFolderOfSomebodyElseIsRefusedAndStaysAsItIs) {
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

TEST_F(TrainerTest, ARenamedCheckpointIsRefused) {
  config_.train.checkpoint_every = 10;
  train(config_, folder_ / "run");
  fs::rename(checkpoint_file(folder_ / "run", 10), checkpoint_file(folder_ / "run", 99));
  EXPECT_THAT(message_of<FileError>([&] { train(config_, folder_ / "run", true); }),
              HasSubstr("step-00000099.safetensors: is the checkpoint of step 10"));
  EXPECT_TRUE(fs::exists(checkpoint_file(folder_ / "run", 99)));
}

TEST_F(TrainerTest, StateThatNoRunComesToIsRefused) {
  train(config_, folder_ / "run");
  const fs::path file = checkpoint_file(folder_ / "run", 20);
  const SafetensorsReader reader(file);
  Checkpoint checkpoint;
  for (const std::string& name : reader.names()) checkpoint.tensors.push_back({name, reader.load(name)});
  const Json good = checkpoint_state(reader);
  const std::vector<std::pair<std::string, Json>> wrong = {{"/training/step", -1},
                                                           {"/training/epoch", -5},
                                                           {"/training/seconds", -1.0},
                                                           {"/training/seconds", nullptr},
                                                           {"/training/best_step", 21},
                                                           {"/training/last_validation", 1000},
                                                           {"/training/tokens", -1},
                                                           {"/training/window/tokens", -1},
                                                           {"/training/without_improvement", int64_t{1} << 60}};
  for (const auto& [field, value] : wrong) {
    checkpoint.state = good;
    checkpoint.state[Json::json_pointer(field)] = value;
    write_checkpoint(file, checkpoint);
    const std::string name = field.substr(field.rfind('/') + 1);
    EXPECT_THAT(message_of<Error>([&] { train(config_, folder_ / "run", true); }),
                AllOf(HasSubstr("step-00000020.safetensors: training"), HasSubstr(name)));
  }
}

TEST_F(TrainerTest, ResumeBeginsWhereThereIsNothing) {
  config_.train.steps = 1;
  EXPECT_EQ(train(config_, folder_ / "run", true).result.step, 1);
}

TEST_F(TrainerTest, TheSameSeedIsTheSameRunAndAnotherIsNot) {
  config_.train.steps = 5;
  config_.data.valid_source = config_.data.valid_target = {};
  train(config_, folder_ / "a");
  train(config_, folder_ / "b");
  config_.train.seed = 6;
  train(config_, folder_ / "c");
  const auto a = tensors_of(checkpoint_file(folder_ / "a", 5));
  EXPECT_EQ(a, tensors_of(checkpoint_file(folder_ / "b", 5)));
  EXPECT_NE(a, tensors_of(checkpoint_file(folder_ / "c", 5)));
  EXPECT_EQ(metrics_of(folder_ / "a"), metrics_of(folder_ / "b"));
}

TEST_F(TrainerTest, TheNumberOfThreadsDoesNotMatter) {
  config_.model = {.d_model = 64, .heads = 4, .layers = 2, .d_ff = 256};
  config_.train.steps = 8;
  config_.train.batch_tokens = 512;
  config_.train.threads = 1;
  train(config_, folder_ / "one");
  config_.train.threads = 2;
  train(config_, folder_ / "two");
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "one", 8)), tensors_of(checkpoint_file(folder_ / "two", 8)));
}

TEST_F(TrainerTest, StopsByEpochs) {
  config_.train.steps = 0;
  config_.train.epochs = 2;
  config_.train.valid_every = 0;  // at the end of an epoch
  config_.train.checkpoint_every = 0;
  config_.train.accumulate = 3;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::epochs);
  ASSERT_EQ(run.seen.validations.size(), 2);
  EXPECT_EQ(run.seen.checkpoints.size(), 2);
  EXPECT_EQ(run.seen.steps.back().epoch, 2);
  EXPECT_EQ(run.seen.validations[1].step, run.result.step);
  EXPECT_NEAR(static_cast<double>(run.seen.start.total_steps), static_cast<double>(run.result.step), 1);
  EXPECT_EQ(run.seen.start.total_steps, 2 * ((run.seen.start.batches + 2) / 3));
}

TEST_F(TrainerTest, StopsByTime) {
  config_.train.steps = 0;
  config_.train.max_minutes = 0.3 / 60;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::minutes);
  EXPECT_GE(run.result.seconds, 0.3);
  EXPECT_LT(run.seen.steps[run.seen.steps.size() - 2].seconds, 0.3);
  EXPECT_TRUE(fs::exists(folder_ / "run" / "model" / "model.safetensors"));
}

TEST_F(TrainerTest, StopsWhenPatienceEndsAndKeepsTheBest) {
  config_.train.steps = 1000;
  config_.train.valid_every = 2;
  config_.train.patience = 3;
  config_.train.best_metric = ValidationMetric::loss;
  config_.schedule = {.kind = ScheduleKind::constant, .learning_rate = 0.5, .warmup_steps = 0};  // runs away
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::patience);
  ASSERT_TRUE(run.result.best_step.has_value());
  EXPECT_EQ(run.result.step, *run.result.best_step + 6);
  double least = 1e30;
  for (const ValidationReport& report : run.seen.validations) {
    EXPECT_EQ(report.best, report.loss.loss < least);
    least = std::min(least, report.loss.loss);
  }
  EXPECT_EQ(run.result.best_value, least);
  EXPECT_EQ(tensors_of(folder_ / "run" / "model" / "model.safetensors"),
            tensors_of(folder_ / "run" / "best" / "model.safetensors"));
  EXPECT_EQ(train(config_, folder_ / "run", true).seen.steps.size(), 0);  // patience has ended for good
}

TEST_F(TrainerTest, TheOutcomeIsTheMeanOfCheckpoints) {
  config_.train.steps = 6;
  config_.train.checkpoint_every = 2;
  config_.train.average_checkpoints = 2;
  const TrainedRun run = train(config_, folder_ / "run");
  ASSERT_TRUE(run.result.outcome.has_value());
  const SafetensorsReader a(checkpoint_file(folder_ / "run", 4)), b(checkpoint_file(folder_ / "run", 6));
  const SafetensorsReader outcome(folder_ / "run" / "model" / "model.safetensors");
  for (const std::string& name : outcome.names()) {
    const Tensor x = a.load("model." + name), y = b.load("model." + name), mean = outcome.load(name);
    for (size_t i = 0; i < mean.values<float>().size(); ++i)
      ASSERT_NEAR(mean.values<float>()[i], (x.values<float>()[i] + y.values<float>()[i]) / 2, 1e-6) << name;
  }
}

TEST_F(TrainerTest, TheOutcomeWithoutValidationIsTheMovingAverage) {
  config_.train.steps = 4;
  config_.train.moving_average = 0.99;
  config_.data.valid_source = config_.data.valid_target = {};
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_FALSE(run.result.best_step.has_value());
  const SafetensorsReader checkpoint(checkpoint_file(folder_ / "run", 4));
  const SafetensorsReader outcome(folder_ / "run" / "model" / "model.safetensors");
  for (const std::string& name : outcome.names()) {
    const Tensor t = outcome.load(name);
    EXPECT_EQ(std::memcmp(t.raw(), checkpoint.load("average." + name).raw(), t.bytes()), 0) << name;
  }
}

TEST_F(TrainerTest, ANumberThatIsNotFiniteEndsTheRunAndSavesNothing) {
  config_.schedule = {.kind = ScheduleKind::constant, .learning_rate = 1e6, .warmup_steps = 0};
  config_.optimizer = {.kind = OptimizerKind::adamw, .weight_decay = 1e6};  // multiplies the weights by -1e12
  config_.train.checkpoint_every = 1;
  Recorder seen;
  const std::atomic<bool> stop{false};
  const std::string message =
      message_of<NumericError>([&] { Trainer(config_, folder_ / "run", seen, stop).run(false); });
  ASSERT_FALSE(seen.steps.empty());
  const int64_t bad = seen.steps.back().step + 1;
  EXPECT_THAT(message, HasSubstr(fmt::format("step {}, epoch 1, batch {}: the ", bad, bad)));
  EXPECT_THAT(message, HasSubstr("is not finite at element"));
  ASSERT_EQ(seen.checkpoints.size(), seen.steps.size());
  EXPECT_FALSE(fs::exists(checkpoint_file(folder_ / "run", bad)));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "model"));
}

// Like a disk with no more than that left for one file.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(TrainerTest, AFullDiskIsAClearErrorAndOlderCheckpointsStay) {
  config_.train.checkpoint_every = 5;
  train(config_, folder_ / "whole");
  std::optional<FileSizeLimit> full;
  const auto fill = [&](const StepReport& report) {
    if (report.step == 8) full.emplace(60000);
  };
  const std::string message = message_of<FileError>([&] { train(config_, folder_ / "run", false, fill); });
  full.reset();
  EXPECT_THAT(message, HasSubstr("step-00000010.safetensors"));
  EXPECT_THAT(message, HasSubstr("File too large"));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder_ / "run" / "checkpoints"))
    files.push_back(entry.path().filename().string());
  EXPECT_EQ(files, std::vector<std::string>{"step-00000005.safetensors"});
  EXPECT_EQ(train(config_, folder_ / "run", true).seen.start.step, 5);
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "run", 20)), tensors_of(checkpoint_file(folder_ / "whole", 20)));
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics_of(folder_ / "whole"));
}

TEST_F(TrainerTest, RefusesAVocabularyThatIsNotTheTokenizers) {
  config_.model.source_vocab = config_.model.target_vocab = 50;
  EXPECT_EQ(message_of<ConfigError>([&] { train(config_, folder_ / "run"); }),
            "model.source_vocab = 50: the tokenizer has 12 tokens (0 takes its size)");
  RunConfig nothing = config_;
  nothing.data.train_source = nothing.data.train_target = {};
  EXPECT_EQ(message_of<ConfigError>([&] { train(nothing, folder_ / "run"); }), "data.train_source names no file");
}

TEST_F(TrainerTest, ValidationTextIsCheckedBeforeTraining) {
  std::ofstream(folder_ / "valid.tgt", std::ios::app) << "a b\n";
  EXPECT_THAT(message_of<DataError>([&] { train(config_, folder_ / "run"); }),
              AllOf(HasSubstr("valid.src ends after 20 lines"), HasSubstr("valid.tgt goes on")));
  std::string line;
  for (int i = 0; i < 1100; ++i) line += "a ";
  write_file(folder_ / "valid.src", "a b\n" + line + "\n");
  write_file(folder_ / "valid.tgt", "b a\nb a\n");
  EXPECT_THAT(message_of<DataError>([&] { train(config_, folder_ / "run"); }),
              HasSubstr("valid.src:2: has 1100 tokens, at most 1024"));
}

}  // namespace
}  // namespace attune
