// Several ranks, threads here, each with a GPU of its own, or all on one. The GPUs are real or emulated; what goes
// through the host is tested without any, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/host_view.h"
#include "attune/train/data_parallel.h"
#include "attune/train/rank_device.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/train/reverse_training.h"
#include "tests/train/train_on_ranks.h"

namespace attune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// What one update leaves on a rank.
struct Updated {
  std::vector<std::vector<float>> gradients;   // summed, 0 where another rank has the sum
  std::vector<std::vector<float>> parameters;  // after Adam's step
  double squares = 0;
  std::string way;  // of the gradients
};

// One update on a device. Sizes are such that buckets and parts have uneven ends; rank 1 has no gradient of the last
// parameter.
Updated update_once(Communicator& communicator, const Device& device, bool shard) {
  std::vector<Tensor> tensors;
  for (const int64_t size : {5, 21, 64, 1}) tensors.push_back(Tensor::full({size}, 1, {.device = device}));
  std::vector<NamedParameter> parameters;
  for (Tensor& tensor : tensors) {
    require_gradient(tensor);
    parameters.push_back({"parameter " + std::to_string(parameters.size()), &tensor});
  }
  DataParallel ranks(communicator, parameters, {.shard = shard, .bucket_bytes = 100});
  Adam adam(parameters, {.clip_norm = 0.5}, 0, ranks.owned());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i == 3 && communicator.rank() == 1) continue;
    std::vector<float> values(static_cast<size_t>(tensors[i].numel()));
    for (size_t at = 0; at < values.size(); ++at)
      values[at] = std::sin(static_cast<float>(7 * i + at) + static_cast<float>(communicator.rank()) / 3);
    set_gradient(tensors[i], Tensor::from({tensors[i].numel()}, values, device));
  }
  ranks.reduce();
  Updated done;
  const Tensor squares = Tensor::zeros({1}, {DType::f64, device});
  ranks.add_squares(squares);
  done.squares = ranks.agree({.squares = squares.item()}).squares;
  done.way = ranks.exchange().text();
  const std::vector<ElementRange> owned = ranks.owned();
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<float> sum = host_values<float>(gradient(tensors[i]));
    for (int64_t at = 0; at < std::ssize(sum); ++at)
      if (shard && (at < owned[i].begin || at >= owned[i].end)) sum[static_cast<size_t>(at)] = 0;
    done.gradients.push_back(sum);
  }
  adam.start_step(0.1, Tensor::from({1}, std::vector{done.squares}, device));
  ranks.share_parameters();
  for (const Tensor& tensor : tensors) done.parameters.push_back(host_values<float>(tensor));
  return done;
}

// By rank; each has the device that `device_of` says.
template <class F>
std::vector<Updated> updates(int ranks, bool shard, const F& device_of) {
  std::vector<Updated> all(static_cast<size_t>(ranks));
  run_in_process(ranks, [&](Communicator& communicator) {
    all[static_cast<size_t>(communicator.rank())] = update_once(communicator, device_of(communicator.rank()), shard);
  });
  for (const Updated& one : all) {
    EXPECT_EQ(one.parameters, all[0].parameters);
    EXPECT_EQ(one.squares, all[0].squares);
    EXPECT_EQ(one.way, all[0].way);
  }
  return all;
}

class DeviceRanksUpdate : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
  }
  const int ranks_ = std::get<0>(GetParam());
  const bool shard_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(RanksAndShards, DeviceRanksUpdate,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4), ::testing::Bool()));

TEST_P(DeviceRanksUpdate, ThroughTheHostGradientsAreThoseOfTheCpuToTheBit) {
  const std::vector<Updated> expected = updates(ranks_, shard_, [](int) { return Device(Cpu{}); });
  for (const Device& device : devices_under_test()) {
    const std::vector<Updated> found = updates(ranks_, shard_, [&](int) { return device; });
    for (size_t rank = 0; rank < found.size(); ++rank) {
      EXPECT_EQ(found[rank].gradients, expected[rank].gradients);
      EXPECT_NEAR(found[rank].squares, expected[rank].squares, 1e-6 * expected[rank].squares);
    }
  }
}

TEST_P(DeviceRanksUpdate, ShardedParametersAreThoseOfTheWhole) {
  for (const Device& device : devices_under_test()) {
    const auto on_device = [&](int) { return device; };
    EXPECT_EQ(updates(ranks_, shard_, on_device)[0].parameters, updates(ranks_, false, on_device)[0].parameters);
  }
}

// Two numbers have one sum, whatever their order.
TEST_P(DeviceRanksUpdate, FromGpuToGpuGradientsAreThoseOfTheCpu) {
  if (ranks_ == 1 || usable_gpus() < ranks_) GTEST_SKIP() << "needs a GPU for each of several ranks";
  const std::vector<Updated> expected = updates(ranks_, false, [](int) { return Device(Cpu{}); });
  const std::vector<Updated> found = updates(ranks_, shard_, [](int rank) { return Device(Cuda{rank}); });
  EXPECT_THAT(found[0].way, HasSubstr("from GPU to GPU"));
  std::vector<std::vector<float>> sums = found[0].gradients;
  for (size_t rank = 1; shard_ && rank < found.size(); ++rank)  // one has the sum, the others 0
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t at = 0; at < sums[i].size(); ++at) sums[i][at] += found[rank].gradients[i][at];
  const float tolerance = ranks_ == 2 ? 0 : 1e-6F;
  for (size_t i = 0; i < sums.size(); ++i)
    EXPECT_THAT(sums[i], testing::Pointwise(testing::FloatNear(tolerance), expected[0].gradients[i]));
  EXPECT_NEAR(found[0].squares, expected[0].squares, 1e-6 * expected[0].squares);
}

TEST(DeviceRanks, EachRankTakesTheGpuOfItsNumber) {
  const int gpus = usable_gpus();
  if (gpus == 0) GTEST_SKIP() << "no GPU";
  if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
  run_in_process(gpus + 1, [&](Communicator& communicator) {
    EXPECT_EQ(device_of_rank("cuda", communicator), Device(Cuda{communicator.rank() % gpus}));
    EXPECT_EQ(device_of_rank("cuda:0", communicator), Device(Cuda{0}));
    EXPECT_EQ(device_of_rank("cpu", communicator), Device(Cpu{}));
  });
  LocalCommunicator alone;
  EXPECT_EQ(device_of_rank("cuda", alone), Device(Cuda{0}));
}

TEST(DeviceRanks, WhatIsMissingIsSaid) {
  LocalCommunicator alone;
  EXPECT_THAT(message_of<DeviceError>([&] { device_of_rank("cuda:63", alone); }),
              testing::StartsWith("train.device = cuda:63: device cuda:63: "));
  if (usable_gpus() > 0) return;
  EXPECT_THROW(run_in_process(2, [](Communicator& communicator) { device_of_rank("cuda", communicator); }),
               DeviceError);
}

class DeviceRanksTraining : public ReverseTraining {
 protected:
  void SetUp() override {
    if (usable_gpus() == 0) GTEST_SKIP() << "no GPU";
    if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
    config_.train.log_every = 1;
    config_.train.steps = 4;
    config_.optimizer.clip_norm = 0.5;
    config_.data.valid_source = config_.data.valid_target = {};
  }

  TrainedRun run_on(int ranks, const std::string& device, const std::string& name, bool shard = false) {
    config_.train.device = device;
    config_.train.shard_optimizer = shard;
    return train_on(ranks, config_, folder_ / name);
  }
  std::map<std::string, std::string> numbers_of(const std::string& name) const {
    return tensors_of(checkpoint_file(folder_ / name, config_.train.steps));
  }
  static void expect_near(const TrainedRun& found, const TrainedRun& expected) {
    ASSERT_EQ(found.seen.steps.size(), expected.seen.steps.size());
    for (size_t i = 0; i < found.seen.steps.size(); ++i) {
      const StepReport &a = found.seen.steps[i], &b = expected.seen.steps[i];
      EXPECT_NEAR(a.loss, b.loss, 1e-3 * b.loss) << "step " << i + 1;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-2 * b.gradient_norm) << "step " << i + 1;
    }
  }
};

TEST_F(DeviceRanksTraining, LossesAreThoseOfTheSameRanksOnTheCpu) {
  for (const int ranks : {2, 3}) {
    if (usable_gpus() < ranks) GTEST_SKIP() << "needs " << ranks << " GPUs";
    const std::string n = std::to_string(ranks);
    const TrainedRun expected = run_on(ranks, "cpu", "cpu" + n);
    const TrainedRun found = run_on(ranks, "cuda", "cuda" + n, ranks == 3);
    expect_near(found, expected);
    EXPECT_THAT(found.seen.messages, Contains(HasSubstr("gradients go from GPU to GPU, by NCCL")));
    EXPECT_THAT(expected.seen.messages, testing::Not(Contains(HasSubstr("gradients go"))));
  }
}

TEST_F(DeviceRanksTraining, TheSameRunHasTheSameBits) {
  if (usable_gpus() < 3) GTEST_SKIP() << "needs three GPUs";
  config_.train.moving_average = 0.9;
  run_on(3, "cuda", "a");
  run_on(3, "cuda", "b");
  EXPECT_EQ(numbers_of("a"), numbers_of("b"));
}

// Two numbers have one sum, whatever their order: here all ways lead to the same bits.
TEST_F(DeviceRanksTraining, TwoRanksHaveTheSameBitsWhateverTheWay) {
  config_.train.moving_average = 0.9;
  const TrainedRun staged = run_on(2, "cuda:0", "staged");
  EXPECT_THAT(staged.seen.messages, Contains("gradients go through the memory of the host: ranks 0 and 1 share a GPU"));
  run_on(2, "cuda:0", "staged_shard", true);
  EXPECT_EQ(numbers_of("staged_shard"), numbers_of("staged"));
  if (usable_gpus() < 2) GTEST_SKIP() << "needs two GPUs";
  run_on(2, "cuda", "direct");
  run_on(2, "cuda", "direct_shard", true);
  EXPECT_EQ(numbers_of("direct"), numbers_of("staged"));
  EXPECT_EQ(numbers_of("direct_shard"), numbers_of("staged"));
}

TEST_F(DeviceRanksTraining, ShardedThroughTheHostIsTheSameToTheBit) {
  config_.train.moving_average = 0.9;
  config_.data.valid_source = {(folder_ / "valid.src").string()};
  config_.data.valid_target = {(folder_ / "valid.tgt").string()};
  config_.train.valid_every = 2;
  config_.train.valid_sentences = 3;
  run_on(3, "cuda:0", "whole");
  run_on(3, "cuda:0", "sharded", true);
  EXPECT_EQ(numbers_of("sharded"), numbers_of("whole"));
}

TEST_F(DeviceRanksTraining, ARunGoesOnOnOtherDevicesAndRanks) {
  config_.model.dropout = config_.model.attention_dropout = config_.model.activation_dropout = 0;
  config_.optimizer.epsilon = 1e-3;  // so that rounding is not blown up to the full rate
  config_.train.checkpoint_every = 2;
  config_.train.moving_average = 0.9;
  config_.train.steps = 6;
  const TrainedRun expected = train_on(1, config_, folder_ / "whole");
  struct Part {
    int ranks;
    const char* device;
    bool shard;
  };
  TrainedRun found;
  for (const Part& part : {Part{2, "cuda", true}, Part{1, "cpu", false}, Part{3, "cuda:0", true}}) {
    config_.train.device = part.device;
    config_.train.shard_optimizer = part.shard;
    const bool resumes = !found.seen.steps.empty();
    config_.train.steps = std::ssize(found.seen.steps) + 2;
    const TrainedRun run = train_on(part.ranks, config_, folder_ / "parts", resumes);
    found.seen.steps.insert(found.seen.steps.end(), run.seen.steps.begin(), run.seen.steps.end());
  }
  expect_near(found, expected);
}

// Its GPU would wait forever; the communicator says it.
TEST(DeviceRanks, ARankThatFailsEndsTheOthers) {
  if (looks_for_races()) GTEST_SKIP() << kOneThreadForRaces;
  if (usable_gpus() < 2) GTEST_SKIP() << "needs two GPUs";
  EXPECT_EQ(message_of<NumericError>([] {
              run_in_process(2, [](Communicator& communicator) {
                Tensor parameter = Tensor::full({9}, 1, {.device = Cuda{communicator.rank()}});
                require_gradient(parameter);
                DataParallel ranks(communicator, {{"parameter", &parameter}});
                if (communicator.rank() == 1) throw NumericError("rank 1 has had enough");
                EXPECT_THROW(ranks.reduce(), CommunicationError);
              });
            }),
            "rank 1 has had enough");
}

}  // namespace
}  // namespace attune
