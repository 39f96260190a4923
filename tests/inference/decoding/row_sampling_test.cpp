#include "attune/inference/decoding/row_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/random.h"
#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A job with its room.
struct Job {
  SamplingJob job;
  std::vector<float> aside;
  std::vector<SamplingJob::Likely> likeliest;
  std::vector<SamplingJob::Drawn> drawn;

  Job(const Tensor& logits, int64_t row, size_t wanted, std::span<const double> numbers = {},
      std::span<const int32_t> set_aside = {})
      : aside(set_aside.size()), likeliest(wanted), drawn(numbers.size()) {
    job = {.logits = &logits, .row = row, .size = logits.size(1)};
    job.set_aside = set_aside;
    job.wants_sum = true;
    job.logits_aside = aside;
    job.likeliest = likeliest;
    job.numbers = numbers;
    job.drawn = drawn;
  }
  std::vector<int32_t> tokens() const {
    std::vector<int32_t> found;
    for (size_t i = 0; i < static_cast<size_t>(job.found); ++i) found.push_back(likeliest[i].token);
    return found;
  }
};

void answer(std::initializer_list<Job*> jobs) {
  std::vector<SamplingJob*> all;
  for (Job* j : jobs) all.push_back(&j->job);
  sample_rows(all);
}

TEST(RowSampling, SaysWhatIsNeededOfARow) {
  for (const Device& device : all_devices()) {
    SCOPED_TRACE(device.text());
    const Tensor logits = Tensor::from({2, 6}, std::vector<float>{1, 3, -kInfinity, 3, 2, 9, 0, 0, 0, 0, 0, 0}, device);
    const std::vector<double> numbers = {0.01, 0.5, 0.9};
    const std::vector<int32_t> excluded = {5, 17, -1}, aside = {4};  // 17 and -1 are in no row
    Job first(logits, 0, 5, numbers, aside), second(logits, 1, 2);
    first.job.excluded = excluded;
    first.job.temperature = 2;
    answer({&first, &second});
    ASSERT_TRUE(first.job.valid);
    EXPECT_EQ(first.job.possible, 3);
    EXPECT_EQ(first.job.largest, 3);
    EXPECT_EQ(first.tokens(), (std::vector<int32_t>{1, 3, 0}));
    EXPECT_EQ(first.likeliest[2].logit, 1);
    const double low = std::exp(-1.0);
    EXPECT_NEAR(first.job.sum, 2 + low, 1e-12);
    EXPECT_EQ(first.drawn[0].token, 0);
    EXPECT_EQ(first.drawn[1].token, 1);
    EXPECT_EQ(first.drawn[2].token, 3);
    EXPECT_NEAR(first.drawn[2].before, 1 + low, 1e-12);
    EXPECT_NEAR(first.drawn[2].after, 2 + low, 1e-12);
    EXPECT_EQ(first.aside, (std::vector<float>{2}));
    EXPECT_EQ(second.tokens(), (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(host_values<float>(logits), (std::vector<float>{1, 3, -kInfinity, 3, 2, -kInfinity, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(RowSampling, SmallWeightsHaveNoPart) {
  for (const Device& device : all_devices()) {
    const Tensor logits = Tensor::from({1, 3}, std::vector<float>{-1, 0, -3}, device);
    const std::vector<double> numbers = {0.999};
    Job job(logits, 0, 0, numbers);
    job.job.least = 0.3;
    answer({&job});
    EXPECT_NEAR(job.job.sum, 1 + std::exp(-1.0), 1e-12);
    EXPECT_EQ(job.drawn[0].token, 1);
    EXPECT_FALSE(job.job.near_least);
    job.job.least = std::exp(-1.0);
    answer({&job});
    EXPECT_TRUE(job.job.near_least);
  }
}

TEST(RowSampling, ARowThatIsNoDistributionStaysAsItIs) {
  for (const Device& device : all_devices()) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
      const Tensor logits = Tensor::from({2, 3}, std::vector<float>{1, 2, bad, 1, 2, 3}, device);
      const std::vector<int32_t> excluded = {0};
      Job first(logits, 0, 1), second(logits, 1, 1);
      first.job.excluded = second.job.excluded = excluded;
      answer({&first, &second});
      EXPECT_FALSE(first.job.valid);
      EXPECT_TRUE(second.job.valid);
      EXPECT_EQ(host_values<float>(logits)[0], 1);
      EXPECT_EQ(host_values<float>(logits)[3], -kInfinity);
    }
    const Tensor none = Tensor::full({1, 40}, -kInfinity, {.device = device});
    const std::vector<double> numbers = {0.5};
    Job job(none, 0, 3, numbers);
    answer({&job});
    EXPECT_TRUE(job.job.valid);
    EXPECT_EQ(job.job.possible, 0);
    EXPECT_EQ(job.job.found, 0);
    EXPECT_EQ(job.drawn[0].token, -1);
  }
}

// Many logits are equal, some minus infinity; zeros have both signs.
TEST(RowSampling, EveryDeviceFindsTheSame) {
  Random random(8);
  for (const int64_t vocab : {1, 2, 31, 255, 256, 257, 1025, 5000}) {
    std::vector<float> values(static_cast<size_t>(3 * vocab));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto kind = static_cast<int64_t>(i) / vocab;
      values[i] = kind == 0   ? static_cast<float>(4 * random.normal())
                  : kind == 1 ? static_cast<float>(random.below(3)) - 1
                              : (random.below(2) == 0 ? -0.0f : 0.0f);
      if (kind == 1 && random.below(3) == 0 && vocab > 2) values[i] = -kInfinity;
    }
    const Tensor expected = Tensor::from({3, vocab}, values);
    for (const size_t wanted : {size_t{1}, size_t{7}, size_t{300}, size_t{kMostLikeliest}}) {
      for (const Device& device : devices_under_test()) {
        const Tensor found = expected.to(device);
        for (int64_t row = 0; row < 3; ++row) {
          SCOPED_TRACE(testing::Message() << device.text() << ": " << wanted << " of " << vocab << ", row " << row);
          Job a(expected, row, wanted), b(found, row, wanted);
          answer({&a});
          answer({&b});
          EXPECT_EQ(b.job.possible, a.job.possible);
          EXPECT_EQ(b.job.largest, a.job.largest);
          EXPECT_NEAR(b.job.sum, a.job.sum, 1e-12 * a.job.sum);
          EXPECT_EQ(b.tokens(), a.tokens());
        }
      }
    }
  }
}

TEST(RowSampling, RefusesWhatDoesNotFit) {
  const Tensor logits = Tensor::zeros({2, 4});
  const auto refusal = [](Job job) { return message_of<ShapeError>([&] { answer({&job}); }); };
  EXPECT_THAT(refusal(Job(logits, 2, 1)), HasSubstr("found float32 [2, 4], row 2 of 4 tokens"));
  EXPECT_THAT(refusal(Job(Tensor::zeros({2, 4}, {DType::f64}), 0, 1)), HasSubstr("needs float32 logits"));
  EXPECT_THAT(refusal(Job(logits, 0, kMostLikeliest + 1)), HasSubstr("at most 1024 of the likeliest"));
  const std::vector<int32_t> outside = {4};
  EXPECT_THAT(refusal(Job(logits, 0, 1, {}, outside)), HasSubstr("tokens set aside in [0, 4), found 4"));
  const std::vector<double> numbers = {0.5};
  Job job(logits, 0, 1, numbers);
  job.job.wants_sum = false;
  EXPECT_EQ(message_of<ShapeError>([&] { answer({&job}); }), "sample_rows: numbers need the sum");
  job.job.wants_sum = true;
  job.job.drawn = {};
  EXPECT_THAT(message_of<ShapeError>([&] { answer({&job}); }), HasSubstr("0 of 1 tokens"));
}

}  // namespace
}  // namespace attune
