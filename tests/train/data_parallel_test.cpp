// One update of several ranks, threads here; whole runs are in trainer_on_ranks_test.cpp.

#include "attune/train/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "attune/dist/point_to_point_communicator.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_ranks.h"
#include "tests/support/recording_transport.h"
#include "tests/train/small_batches.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(DataParallel, GradientsTravelWhileBackwardGoesOn) {
  run_in_process(2, [&](Communicator& communicator) {
    const auto model = small_lm();
    DataParallel ranks(communicator, named_parameters(*model), {.bucket_bytes = 4096});
    const TrainingBatch batch = training_batch(*model, lm_batch(communicator.rank()));
    int64_t sent_in_backward = 0;
    backward(batch.loss({}).loss, {}, [&](const GradientNode& leaf) {
      ranks.on_complete(leaf);
      sent_in_backward = communicator.bytes_sent();
    });
    communicator.barrier();  // comes after all that was started
    const int64_t after_backward = communicator.bytes_sent();
    ranks.reduce();
    EXPECT_GE(after_backward, parameter_count(*model) * 4);  // 2 (N - 1) / N of four bytes each
    EXPECT_LE(sent_in_backward, after_backward);
    EXPECT_EQ(communicator.bytes_sent(), after_backward);
  });
}

// Each rank counts the tokens of its part; the biases follow the sum, and stay the same on all ranks.
TEST(DataParallel, BiasesOfExpertsAreTheSameOnEveryRank) {
  std::vector<std::vector<float>> biases(2);
  run_in_process(2, [&](Communicator& communicator) {
    TransformerConfig config = small_lm()->config();
    config.feed_forward = Experts{.experts = 5, .choice_bias = true, .bias_rate = 0.01};
    const auto model = build_decoder_lm(config, 7);
    require_gradients(*model);
    Adam adam(trained_parameters(*model), {});
    DataParallel ranks(communicator, trained_parameters(*model));
    const std::vector<TrainingBatch> batches = {training_batch(*model, lm_batch(communicator.rank()))};
    for (int64_t step = 1; step <= 5; ++step)
      update(*model, adam, {.batches = batches, .step = step, .learning_rate = 0.01, .ranks = &ranks});
    for (const NamedParameter& p : named_parameters(*model))
      if (p.name.ends_with(".choice_bias"))
        biases[static_cast<size_t>(communicator.rank())] = host_values<float>(*p.tensor);
  });
  EXPECT_EQ(biases[0], biases[1]);
  EXPECT_NE(biases[0], std::vector<float>(5));
}

// What the ranks agree on goes by messages in either case.
TEST(DataParallel, AsksTheLibraryOfTheNetworkForSumsIfItMay) {
  const auto calls_with = [](bool shard, Algorithm algorithm) {
    std::vector<std::string> calls;
    PointToPointCommunicator communicator([&] { return std::make_unique<RecordingTransport>(calls); });
    Tensor x = Tensor::full({3, 4}, 1);
    require_gradient(x);
    DataParallel ranks(communicator, {{"x", &x}}, {.shard = shard, .algorithm = algorithm});
    ranks.reduce();
    ranks.share_parameters();
    return calls;
  };
  using Calls = std::vector<std::string>;
  EXPECT_EQ(calls_with(false, Algorithm::of_network), Calls{"all_reduce"});
  EXPECT_EQ(calls_with(true, Algorithm::of_network), (Calls{"reduce_scatter", "all_gather"}));
  EXPECT_EQ(calls_with(false, Algorithm::fixed), (Calls{"exchange", "exchange"}));
  EXPECT_EQ(calls_with(true, Algorithm::fixed), (Calls{"exchange", "exchange"}));
}

TEST(DataParallel, ALateGradientIsNoticed) {
  EXPECT_THAT(message_of<Error>([] {
                run_in_process(2, [](Communicator& communicator) {
                  const auto model = small_lm();
                  DataParallel ranks(communicator, named_parameters(*model));
                  const TrainingBatch batch = training_batch(*model, lm_batch(communicator.rank()));
                  backward(batch.loss({}).loss, {}, [&](const GradientNode& leaf) { ranks.on_complete(leaf); });
                  communicator.barrier();  // while gradients travel, nobody else may read them
                  backward(batch.loss({}).loss);
                  ranks.reduce();
                });
              }),
              HasSubstr("after it had been said to be complete"));
}

TEST(DataParallel, EveryRankKeepsItsPartOfTheStates) {
  for (const int ranks : {2, 4}) {
    std::vector<int64_t> kept(static_cast<size_t>(ranks));
    int64_t whole = 0;
    run_in_process(ranks, [&](Communicator& communicator) {
      const auto model = small_lm();
      const DataParallel parallel(communicator, named_parameters(*model), {.shard = true, .bucket_bytes = 10000});
      const Adam adam(named_parameters(*model), {}, 0.9, parallel.owned());
      int64_t bytes = 0;
      for (const AdamState& s : adam.states())
        bytes += static_cast<int64_t>(s.m.bytes() + s.v.bytes() + s.average.bytes());
      kept[static_cast<size_t>(communicator.rank())] = bytes;
      if (communicator.rank() == 0) whole = parameter_count(*model) * 12;
    });
    EXPECT_EQ(std::accumulate(kept.begin(), kept.end(), int64_t{0}), whole);
    for (const int64_t bytes : kept) EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(whole) / ranks, 1000);
  }
}

TEST(DataParallel, WhatNoRankHasAGradientOfStaysAsItIs) {
  for (const bool shard : {false, true})
    run_in_process(2, [&](Communicator& communicator) {
      Tensor used = Tensor::full({3, 4}, 1), unused = Tensor::full({3, 4}, 1);
      require_gradient(used);
      require_gradient(unused);
      const std::vector<NamedParameter> parameters = {{"used", &used}, {"unused", &unused}};
      DataParallel ranks(communicator, parameters, {.shard = shard});
      Adam adam(parameters, {.kind = OptimizerKind::adamw, .weight_decay = 1}, 0, ranks.owned());
      if (communicator.rank() == 1) set_gradient(used, Tensor::full({3, 4}, 2));  // the other rank has none at all
      ranks.reduce();
      const Tensor squares = Tensor::zeros({1}, {.dtype = DType::f64});
      ranks.add_squares(squares);
      const UpdateTotals totals = ranks.agree({.squares = squares.item()});
      EXPECT_DOUBLE_EQ(totals.squares, 48);
      adam.start_step(0.1, Tensor::from({1}, std::vector{totals.squares}));
      ranks.share_parameters();
      for (const float x : used.values<float>()) EXPECT_NEAR(x, 1 - 0.1 - 0.1, 1e-5);
      for (const float x : unused.values<float>()) EXPECT_EQ(x, 1);
    });
}

TEST(DataParallel, RanksAgreeOnTheSumsOfTheirNumbers) {
  run_in_process(2, [&](Communicator& communicator) {
    Tensor parameter = Tensor::full({3}, 1);
    require_gradient(parameter);
    DataParallel ranks(communicator, {{"parameter", &parameter}});
    ranks.reduce();
    const double mine = communicator.rank() + 1;
    const UpdateTotals totals = ranks.agree({.loss = mine,
                                             .nll = 10 * mine,
                                             .guided_loss = 100 * mine,
                                             .r_drop_loss = 1000 * mine,
                                             .failures = communicator.rank(),
                                             .squares = 10000 * mine});
    EXPECT_EQ(totals.loss, 3);
    EXPECT_EQ(totals.nll, 30);
    EXPECT_EQ(totals.guided_loss, 300);
    EXPECT_EQ(totals.r_drop_loss, 3000);
    EXPECT_EQ(totals.squares, 30000);
    EXPECT_EQ(totals.failures, 1);
    EXPECT_EQ(totals.first_failure, 1);
  });
}

// Of one rank. Says what is asked of it.
class RecordingExchange final : public TensorExchange {
 public:
  explicit RecordingExchange(std::string& calls) : calls_(calls) {}
  Pending start_all_reduce(const Tensor& /*x*/) override { return start(); }
  Pending start_reduce_scatter(const Tensor& /*x*/) override { return start(); }
  Pending start_all_gather(const Tensor& /*x*/) override { return start(); }
  void broadcast(const Tensor& /*x*/, int /*root*/) override {}
  void all_started() override { calls_ += "all started, "; }
  int64_t unit() const override { return 1; }
  int64_t bytes_sent() const override { return 0; }
  std::string text() const override { return ""; }

 private:
  struct Waited final : Pending::State {
    explicit Waited(std::string& recorded) : calls(recorded) {}
    double wait() override {
      calls += "wait, ";
      return 0;
    }
    std::string& calls;
  };
  Pending start() {
    calls_ += "start, ";
    return Pending(std::make_shared<Waited>(calls_));
  }

  std::string& calls_;
};

// Of one rank. Each operation sends eight bytes and takes a second.
class CostlyExchange final : public TensorExchange {
 public:
  Pending start_all_reduce(const Tensor& /*x*/) override { return start(); }
  Pending start_reduce_scatter(const Tensor& /*x*/) override { return start(); }
  Pending start_all_gather(const Tensor& /*x*/) override { return start(); }
  void broadcast(const Tensor& /*x*/, int /*root*/) override {}
  void all_started() override {}
  int64_t unit() const override { return 1; }
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::string text() const override { return ""; }

 private:
  struct Second final : Pending::State {
    double wait() override { return 1; }
  };
  Pending start() {
    bytes_sent_ += 8;
    return Pending(std::make_shared<Second>());
  }

  int64_t bytes_sent_ = 0;
};

// A validation of moving averages gathers the parameters before and after it.
TEST(DataParallel, TheCostOfAnUpdateIsNotThatOfWhatCameBefore) {
  const auto model = small_lm();
  LocalCommunicator alone;
  Tensor x = Tensor::full({3}, 1);
  require_gradient(x);
  DataParallel ranks(alone, {{"x", &x}}, {.shard = true}, std::make_unique<CostlyExchange>());
  Adam adam({{"x", &x}}, {}, 0, ranks.owned());
  const std::vector<TrainingBatch> batches = {{.labels = 8, .tokens = 8, .loss = {}}};
  for (int step = 0; step < 2; ++step) {
    const UpdateResult result = update(*model, adam, {.batches = batches, .ranks = &ranks});
    EXPECT_EQ(result.bytes_sent, 16) << "gradients and parameters";
    EXPECT_EQ(result.communication_seconds, 2);
    for (int i = 0; i < 2; ++i) ranks.share_parameters();
  }
}

// Also on a rank whose part of the batch is empty.
TEST(DataParallel, WhatIsDoneMeanwhileComesBetweenTheLastStartAndTheFirstWait) {
  const auto model = small_lm();
  std::string calls;
  LocalCommunicator alone;
  Tensor x = Tensor::full({3}, 1), y = Tensor::full({4}, 1);
  for (Tensor* parameter : {&x, &y}) require_gradient(*parameter);
  DataParallel ranks(alone, {{"x", &x}, {"y", &y}}, {.bucket_bytes = 16}, std::make_unique<RecordingExchange>(calls));
  Adam adam({{"x", &x}, {"y", &y}}, {});
  const std::vector<TrainingBatch> batches = {{.labels = 8, .tokens = 8, .loss = {}}};
  update(*model, adam, {.batches = batches, .meanwhile = [&] { calls += "meanwhile, "; }, .ranks = &ranks});
  EXPECT_EQ(calls, "start, start, meanwhile, all started, wait, wait, ");
}

}  // namespace
}  // namespace attune
