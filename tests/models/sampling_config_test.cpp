#include "attune/models/sampling_config.h"
#include "attune/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(SamplingConfig, RefusesAndNames) {
  const auto refusal = [](const SamplingConfig& c) { return message_of<ConfigError>([&] { c.validate(); }); };
  EXPECT_NO_THROW(SamplingConfig{}.validate());
  EXPECT_THAT(refusal({.repetition_penalty = 0}), HasSubstr("repetition_penalty = 0"));
  EXPECT_THAT(refusal({.temperature = -1}), HasSubstr("temperature = -1"));
  EXPECT_THAT(refusal({.temperature = std::nan("")}), HasSubstr("temperature = nan"));
  EXPECT_THAT(refusal({.top_k = -1}), HasSubstr("top_k = -1"));
  EXPECT_THAT(refusal({.top_p = 0}), HasSubstr("top_p = 0"));
  EXPECT_THAT(refusal({.min_p = 1.5}), HasSubstr("min_p = 1.5"));
  EXPECT_THAT(refusal({.max_tokens = 0}), HasSubstr("max_tokens = 0"));
  EXPECT_THAT(refusal({.seed = ~uint64_t{0}}), HasSubstr("seed = "));
}

TEST(SamplingConfig, FieldsComeBack) {
  const SamplingConfig c{.repetition_penalty = 1.1,
                         .temperature = 0.5,
                         .top_k = 4,
                         .top_p = 0.9,
                         .min_p = 0.1,
                         .max_tokens = 7,
                         .seed = (uint64_t{1} << 63) - 1,
                         .slide = true};
  SamplingConfig read;
  read_fields(write_fields(c), read, "test");
  EXPECT_EQ(read, c);
}

}  // namespace
}  // namespace attune
