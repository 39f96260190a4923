// Whole runs on several ranks, threads here; one update is in data_parallel_test.cpp.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "tests/support/in_process_ranks.h"
#include "tests/train/reverse_task.h"
#include "tests/train/small_tasks.h"
#include "tests/train/train_on_ranks.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void expect_near(const fs::path& a, const fs::path& b, double tolerance) {
  const SafetensorsReader x(a), y(b);
  ASSERT_EQ(x.names(), y.names());
  for (const std::string& name : x.names()) {
    const Tensor p = x.load(name), q = y.load(name);
    ASSERT_EQ(p.shape(), q.shape()) << name;
    for (size_t i = 0; i < p.values<float>().size(); ++i)
      ASSERT_NEAR(p.values<float>()[i], q.values<float>()[i], tolerance) << name << " " << i;
  }
}

void without_dropout(RunConfig& config) {
  config.model.dropout = config.model.attention_dropout = config.model.activation_dropout = 0;
  config.optimizer.epsilon = 1e-3;  // so that rounding is not blown up to the full rate
  config.optimizer.weight_decay = 0.01;
  config.optimizer.kind = OptimizerKind::adamw;
}

class RanksTest : public ::testing::Test {
 protected:
  fs::path checkpoint(const std::string& run, int64_t step = 20) const { return checkpoint_file(folder_ / run, step); }

  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_ = make_reverse_task(folder_, 100, 10);
};

struct EqualCase {
  const char* name;
  Architecture architecture;
  std::function<void(RunConfig&)> change;
};
void PrintTo(const EqualCase& c, std::ostream* out) {
  *out << c.name;
}

class RanksEqualOneProcess : public RanksTest, public ::testing::WithParamInterface<EqualCase> {
 protected:
  RunConfig config_for(Architecture architecture) {
    switch (architecture) {
      case Architecture::encoder_decoder:
      case Architecture::encoder:  // is not trained
        break;
      case Architecture::encoder_classifier:
        write_keyword_text(folder_ / "train.tsv", 100, 1);
        write_keyword_text(folder_ / "valid.tsv", 10, 2);
        return keyword_config(folder_);
      case Architecture::encoder_masked_lm:
        write_pairs_text(folder_ / "train.txt", 100, 1);
        write_pairs_text(folder_ / "valid.txt", 10, 2);
        return pairs_config(folder_);
      case Architecture::decoder_lm:
        return rhyme_config(folder_);
    }
    return config_;
  }
};

TEST_P(RanksEqualOneProcess, After20Steps) {
  RunConfig config = config_for(GetParam().architecture);
  without_dropout(config);
  GetParam().change(config);
  const TrainedRun one = train(config, folder_ / "one");
  for (const int ranks : {2, 3}) {
    const std::string name = std::to_string(ranks);
    const TrainedRun several = train_on(ranks, config, folder_ / name);
    expect_near(checkpoint(name), checkpoint("one"), 1e-5);
    ASSERT_EQ(several.seen.steps.size(), one.seen.steps.size());
    for (size_t i = 0; i < one.seen.steps.size(); ++i) {
      EXPECT_NEAR(several.seen.steps[i].loss, one.seen.steps[i].loss, 1e-4);
      EXPECT_NEAR(several.seen.steps[i].nll, one.seen.steps[i].nll, 1e-4);
      EXPECT_NEAR(several.seen.steps[i].gradient_norm, one.seen.steps[i].gradient_norm, 1e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, RanksEqualOneProcess,
                         ::testing::Values(EqualCase{"translation", Architecture::encoder_decoder, [](RunConfig&) {}},
                                           EqualCase{"tied_embeddings_and_clipping", Architecture::encoder_decoder,
                                                     [](RunConfig& c) {
                                                       c.model.share_embeddings = true;
                                                       c.optimizer.clip_norm = 0.3;
                                                     }},
                                           EqualCase{"accumulation", Architecture::encoder_decoder,
                                                     [](RunConfig& c) {
                                                       c.train.accumulate = 3;
                                                       c.train.batch_tokens = 40;
                                                     }},
                                           EqualCase{"guided_and_checkpointed", Architecture::encoder_decoder,
                                                     [](RunConfig& c) {
                                                       const std::string& source = c.data.train_source.front();
                                                       write_reversed_alignments(source);
                                                       c.data.train_alignments = {source + ".align"};
                                                       c.model.layers = 2;
                                                       c.model.positions = RelativeBiasPositions{.buckets = 8};
                                                       c.train.guided_alignment = 0.5;
                                                       c.train.checkpoint_activations = true;
                                                     }},
                                           EqualCase{"batches_of_one_example", Architecture::encoder_decoder,
                                                     [](RunConfig& c) { c.train.batch_tokens = 1; }},
                                           EqualCase{"language_model", Architecture::decoder_lm,
                                                     [](RunConfig& c) {
                                                       c.train.accumulate = 2;
                                                       c.optimizer.clip_norm = 0.3;
                                                     }},
                                           EqualCase{"classifier", Architecture::encoder_classifier, [](RunConfig&) {}},
                                           EqualCase{"masked_language_model", Architecture::encoder_masked_lm,
                                                     [](RunConfig& c) { c.train.batch_tokens = 30; }}),
                         [](const auto& test) { return test.param.name; });

TEST_F(RanksTest, ShardedIsTheSameToTheBit) {
  config_.optimizer.clip_norm = 0.5;
  config_.train.moving_average = 0.9;
  config_.train.valid_every = 7;
  RunConfig sharded = config_;
  sharded.train.shard_optimizer = true;
  for (const int ranks : {2, 3}) {
    const std::string n = std::to_string(ranks);
    const TrainedRun a = train_on(ranks, config_, folder_ / ("whole" + n));
    const TrainedRun again = train_on(ranks, config_, folder_ / ("again" + n));
    const TrainedRun b = train_on(ranks, sharded, folder_ / ("sharded" + n));
    const auto expected = tensors_of(checkpoint("whole" + n));
    EXPECT_EQ(tensors_of(checkpoint("again" + n)), expected);
    EXPECT_EQ(tensors_of(checkpoint("sharded" + n)), expected);
    ASSERT_EQ(b.seen.validations.size(), 3u);  // of the moving averages
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(a.seen.validations[i].loss.nll, b.seen.validations[i].loss.nll);
    for (const char* part : {"best", "model"})
      EXPECT_EQ(tensors_of(folder_ / ("whole" + n) / part / "model.safetensors"),
                tensors_of(folder_ / ("sharded" + n) / part / "model.safetensors"));
  }
}

// These ranks have no library that sums.
TEST_F(RanksTest, WithoutMpiSumsAreAlwaysInTheFixedOrder) {
  RunConfig library = config_;
  library.train.deterministic_reduction = false;
  train_on(3, config_, folder_ / "fixed");
  train_on(3, library, folder_ / "library");
  EXPECT_EQ(tensors_of(checkpoint("library")), tensors_of(checkpoint("fixed")));
}

// Two numbers have one sum, so that the runs have the same bits.
TEST_F(RanksTest, ADeterministicReductionAsksNoLibraryForSums) {
  config_.train.steps = 2;
  for (const bool shard : {false, true}) {
    config_.train.shard_optimizer = shard;
    std::atomic<int64_t> calls_of_fixed = 0, calls_of_library = 0;
    config_.train.deterministic_reduction = true;
    train_on(2, config_, folder_ / fmt::format("fixed {}", shard), false, &calls_of_fixed);
    config_.train.deterministic_reduction = false;
    train_on(2, config_, folder_ / fmt::format("library {}", shard), false, &calls_of_library);
    EXPECT_EQ(calls_of_fixed, 0);
    EXPECT_GT(calls_of_library, 0);
    EXPECT_EQ(tensors_of(checkpoint(fmt::format("library {}", shard), 2)),
              tensors_of(checkpoint(fmt::format("fixed {}", shard), 2)));
  }
}

TEST_F(RanksTest, DropoutDiffersBetweenRanks) {
  config_.train.steps = 1;
  config_.train.log_every = 1;
  const double one = train(config_, folder_ / "one").seen.steps[0].loss;
  const double two = train_on(2, config_, folder_ / "two").seen.steps[0].loss;
  EXPECT_NE(one, two);
  EXPECT_NEAR(one, two, 0.5);
}

// The first half on some ranks, the second on others.
TEST_F(RanksTest, ACheckpointGoesOnWithAnyNumberOfRanks) {
  without_dropout(config_);
  config_.train.checkpoint_every = 10;
  config_.train.moving_average = 0.9;
  train(config_, folder_ / "whole");
  struct Change {
    int before, after;
    bool shard_before, shard_after;
  };
  for (const Change& c : {Change{1, 2, false, true}, Change{2, 4, true, false}, Change{4, 1, true, true},
                          Change{4, 2, true, true}, Change{2, 2, true, true}}) {
    const std::string name = fmt::format("{}{}{}{}", c.before, c.after, c.shard_before, c.shard_after);
    RunConfig half = config_, rest = config_;
    half.train.steps = 10;
    half.train.shard_optimizer = c.shard_before;
    rest.train.shard_optimizer = c.shard_after;
    train_on(c.before, half, folder_ / name);
    const TrainedRun resumed = train_on(c.after, rest, folder_ / name, true);
    EXPECT_EQ(resumed.seen.start.step, 10);
    EXPECT_EQ(resumed.seen.steps.size(), 10u);
    expect_near(checkpoint(name), checkpoint("whole"), 1e-5);
  }
}

TEST_F(RanksTest, ResumingOnTheSameRanksIsExact) {
  config_.train.checkpoint_every = 10;
  config_.train.valid_every = 5;
  config_.train.shard_optimizer = true;
  train_on(2, config_, folder_ / "whole");
  RunConfig half = config_;
  half.train.steps = 10;
  train_on(2, half, folder_ / "parts");
  train_on(2, config_, folder_ / "parts", true);
  EXPECT_EQ(tensors_of(checkpoint("parts")), tensors_of(checkpoint("whole")));
}

TEST_F(RanksTest, ARequestAtOneRankStopsAllAfterTheSameStep) {
  std::array<TrainingResult, 3> results;
  run_in_process(3, [&](Communicator& communicator) {
    std::atomic<bool> stop{communicator.rank() == 2};
    TrainingObserver nobody;
    const std::shared_ptr<Communicator> shared(&communicator, [](Communicator*) {});
    results[static_cast<size_t>(communicator.rank())] =
        Trainer(config_, folder_ / "run", nobody, stop, shared).run(false);
  });
  for (const TrainingResult& result : results) {
    EXPECT_EQ(result.reason, StopReason::requested);
    EXPECT_EQ(result.step, results[0].step);
  }
  EXPECT_TRUE(fs::exists(checkpoint("run", results[0].step)));
}

TEST_F(RanksTest, PatienceEndsOnAllRanks) {
  config_.schedule.learning_rate = 1e-30;  // nothing changes
  config_.train.best_metric = ValidationMetric::loss;
  config_.train.valid_every = 2;
  config_.train.patience = 2;
  const TrainedRun run = train_on(3, config_, folder_ / "run");
  EXPECT_EQ(run.result.reason, StopReason::patience);
  EXPECT_EQ(run.result.step, 6);
}

TEST_F(RanksTest, ABestModelThatWasForgottenIsMeasuredAndWrittenByAll) {
  config_.train.steps = 4;
  config_.train.valid_every = 2;
  config_.train.best_metric = ValidationMetric::loss;
  config_.train.shard_optimizer = true;  // the checkpoint needs all ranks
  train_on(2, config_, folder_ / "run");
  change_state(checkpoint("run", 4), [](Json& state) {
    state["training"]["best_step"] = 2;
    state["training"]["best_value"] = 1e-3;
  });
  fs::remove_all(folder_ / "run" / "best");
  const TrainedRun again = train_on(2, config_, folder_ / "run", true);
  EXPECT_EQ(again.seen.validations.size(), 1u);
  EXPECT_EQ(state_of(checkpoint("run", 4)).at("training").at("best_step"), 4);
}

TEST_F(RanksTest, TheLogSaysWhatCommunicationCosts) {
  train_on(2, config_, folder_ / "run");
  const std::string line = metrics_of(folder_ / "run").at(1);
  for (const char* key : {"\"bytes_sent\":", "\"communication_seconds\":", "\"communication_hidden\":"})
    EXPECT_THAT(line, HasSubstr(key));
  train(config_, folder_ / "one");
  EXPECT_THAT(metrics_of(folder_ / "one").at(1), ::testing::Not(HasSubstr("bytes_sent")));
}

}  // namespace
}  // namespace attune
