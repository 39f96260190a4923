#include "attune/train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "attune/inference/translator.h"
#include "attune/kernels/cpu/gemm/onednn_matmul.h"
#include "attune/kernels/gemm/matmul.h"
#include "tests/support/errors.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/run_command.h"
#include "tests/train/reverse_training.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class TrainerTest : public ReverseTraining {};

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

// Else the run would end at its first validation, without a checkpoint.
TEST_F(TrainerTest, RefusesAtTheStartWhatItCannotValidate) {
  config_.model.positions = LearnedPositions{.max_length = 16};
  config_.data.max_tokens_per_sentence = 15;
  std::string line = "a";
  for (int word = 1; word < 16; ++word) line += " b";
  write_file(folder_ / "valid.src", "a b\n" + line + "\n");
  write_file(folder_ / "valid.tgt", "b a\nb a\n");
  EXPECT_THAT(message_of<DataError>([&] { train(config_, folder_ / "run"); }),
              HasSubstr("valid.src:2: has 16 tokens, at most 15 are accepted for validation"));
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

// How many threads, and the precision of products.
using ThreadsAndPrecision = std::tuple<int64_t, PrecisionChoice>;

class NumberOfThreadsTest : public ReverseTraining, public ::testing::WithParamInterface<ThreadsAndPrecision> {};

// Batches of so many tokens that a library might cut the sums of a weight's gradient between threads.
TEST_P(NumberOfThreadsTest, DoesNotMatter) {
  const auto [threads, precision] = GetParam();
  constexpr int64_t kSteps = 3;
  write_reverse_text(folder_, "train", 1300, 6, 12, 1);
  config_.model = {.d_model = 64, .heads = 2, .layers = 1, .d_ff = 128};
  config_.train.steps = kSteps;
  config_.train.batch_tokens = 3400;
  config_.train.precision = precision;
  config_.train.threads = 1;
  const TrainedRun one = train(config_, folder_ / "one");
  EXPECT_GT(one.seen.start.corpus.size.target_tokens / one.seen.start.batches, 2500);
  config_.train.threads = threads;
  train(config_, folder_ / "several");
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "one", kSteps)),
            tensors_of(checkpoint_file(folder_ / "several", kSteps)));
}
INSTANTIATE_TEST_SUITE_P(Training, NumberOfThreadsTest,
                         ::testing::Combine(::testing::Values(2, 3, 8, 32),
                                            ::testing::Values(PrecisionChoice::float32, PrecisionChoice::bfloat16)));

TEST(NumberOfThreads, DoesNotMatterWithoutAvx512Either) {
  if (!cpu::has_onednn_float32()) GTEST_SKIP() << "that is what all of them just did";
  expect_passes_without_avx512("Training/NumberOfThreadsTest.*");
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

TEST_F(TrainerTest, ALinearScheduleEndsWithTheEpochs) {
  config_.train.steps = 0;
  config_.train.epochs = 3;
  config_.schedule = {.kind = ScheduleKind::linear, .learning_rate = 1e-3, .warmup_steps = 2};
  const TrainedRun run = train(config_, folder_ / "run");
  const auto& steps = run.seen.steps;
  EXPECT_DOUBLE_EQ(steps[1].learning_rate, 1e-3);
  EXPECT_NEAR(steps[steps.size() / 2].learning_rate, 0.5e-3, 0.05e-3);
  EXPECT_NEAR(steps.back().learning_rate, 0, 0.05e-3);
  for (size_t i = 2; i < steps.size(); ++i) EXPECT_LT(steps[i].learning_rate, steps[i - 1].learning_rate + 1e-5);
}

TEST_F(TrainerTest, EpochsThatEndBeforeTheWarmUpAreRefused) {
  config_.train.steps = 0;
  config_.train.epochs = 1;
  config_.schedule = {.kind = ScheduleKind::cosine, .learning_rate = 1e-3, .warmup_steps = 4000};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run"); }),
              MatchesRegex("train.epochs = 1: these are [0-9]+ steps, and schedule.kind = \"cosine\" needs more than "
                           "schedule.warmup_steps = 4000"));
}

TEST_F(TrainerTest, StopsByTime) {
  config_.train.steps = 0;
  config_.train.max_minutes = 0.3 / 60;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::minutes);
  EXPECT_GE(run.result.seconds, 0.3);
  for (size_t i = 1; i < run.seen.steps.size(); ++i) EXPECT_LT(run.seen.steps[i - 1].seconds, 0.3);
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

  const std::vector<std::string> metrics = metrics_of(folder_ / "run");
  const Json last = Json::parse(metrics.back());
  EXPECT_EQ(last.at("step").get<int64_t>(), 6);
  EXPECT_EQ(last.at("averaged_checkpoints").get<int64_t>(), 2);
  EXPECT_EQ(last.at("averaged_valid_loss").get<double>(), run.result.outcome->loss.loss);
  EXPECT_EQ(last.at("averaged_valid_bleu").get<double>(), run.result.outcome->bleu);
  train(config_, folder_ / "run", true);
  EXPECT_EQ(metrics_of(folder_ / "run"), metrics) << "the line is written again, not twice";
}

TEST_F(TrainerTest, OneCheckpointIsNotAveraged) {
  config_.train.steps = 6;
  config_.train.valid_every = 3;
  config_.train.checkpoint_every = 100;
  config_.train.average_checkpoints = 4;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_FALSE(run.result.outcome.has_value());
  EXPECT_THAT(run.seen.messages, ::testing::Contains("train.average_checkpoints = 4: there is one checkpoint, so that "
                                                     "nothing is averaged"));
  EXPECT_EQ(tensors_of(folder_ / "run" / "model" / "model.safetensors"),
            tensors_of(folder_ / "run" / "best" / "model.safetensors"));
  EXPECT_THAT(metrics_of(folder_ / "run").back(), ::testing::Not(HasSubstr("averaged_")));

  config_.train.checkpoint_every = 3;
  const TrainedRun two = train(config_, folder_ / "two");
  EXPECT_TRUE(two.result.outcome.has_value());
  EXPECT_THAT(two.seen.messages,
              ::testing::Contains("train.average_checkpoints = 4: there are 2; the model is their mean"));
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

TEST_F(TrainerTest, HoldsOutPairsOfTheTrainingText) {
  config_.data.valid_source = config_.data.valid_target = {};
  config_.data.valid_fraction = 0.25;
  config_.train.steps = 4;
  config_.train.valid_every = 2;
  const int64_t pairs = static_cast<int64_t>(read_lines(folder_ / "train.src").size());
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(run.seen.start.corpus.validation_examples, pairs / 4);
  EXPECT_EQ(run.seen.start.corpus.size.examples, pairs - pairs / 4);
  ASSERT_EQ(run.seen.validations.size(), 2);
  EXPECT_TRUE(run.seen.validations.back().bleu.has_value());
  // The first sample is the fourth pair.
  EXPECT_EQ(run.seen.validations.back().samples.front().source, read_lines(folder_ / "train.src")[3]);

  config_.data.valid_fraction = 1e-6;
  EXPECT_THAT(message_of<DataError>([&] { train(config_, folder_ / "other"); }),
              HasSubstr(fmt::format("data.valid_fraction = 1e-06: {} pairs are too few: none of them would be held out",
                                    pairs)));
  config_.data.valid_fraction = 0.25;
  std::string text;
  for (size_t i = 1; const std::string& line : read_lines(folder_ / "train.src"))
    text += (i++ % 4 == 0 ? "" : line) + "\n";
  write_file(folder_ / "train.src", text);
  EXPECT_EQ(message_of<DataError>([&] { train(config_, folder_ / "other"); }),
            fmt::format("data.valid_fraction = 0.25: {} of {} pairs are held out, and each of them is empty or longer "
                        "than data.max_tokens_per_sentence = {}",
                        pairs / 4, pairs, config_.data.max_tokens_per_sentence));
  config_.data.valid_source = config_.data.valid_target = {"valid"};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "other"); }),
              HasSubstr("data.valid_fraction = 0.25: cannot be given together with data.valid_source"));
}

TEST_F(TrainerTest, SaysThatTheVocabularyIsSmaller) {
  config_.data.tokenizer_type = TokenizerKind::unigram;
  config_.data.vocab_size = 8000;
  config_.train.steps = 1;
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_LT(run.seen.start.model.source_vocab, 200);
  EXPECT_THAT(run.seen.messages,
              ::testing::Contains(fmt::format("data.vocab_size = 8000 is more than the training text yields: the "
                                              "vocabulary has {} tokens",
                                              run.seen.start.model.source_vocab)));
  EXPECT_THAT(train(config_, folder_ / "run", true).seen.messages, ::testing::IsEmpty()) << "it is said once";
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
