#include "attune/models/generation_config.h"
#include "attune/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

TEST(GenerationConfig, LongestOutput) {
  GenerationConfig c{.max_length = 100, .max_length_ratio = 1.5, .max_length_offset = 10};
  EXPECT_EQ(c.longest_output(0), 10);
  EXPECT_EQ(c.longest_output(7), 20) << "1.5 * 7 + 10, rounded down";
  EXPECT_EQ(c.longest_output(60), 100);
  EXPECT_EQ(c.longest_output(int64_t{1} << 60), 100);
  c.max_length_offset = 0;
  EXPECT_EQ(c.longest_output(0), 1);
  c.min_length = 100;
  EXPECT_EQ(c.longest_output(0), 100);
  c.max_length_ratio = 0;
  EXPECT_EQ(c.longest_output(1), 100) << "a ratio of 0 is no limit";
}

TEST(GenerationConfig, AMinLengthGivesWayToTheLengthThatIsAskedFor) {
  GenerationConfig c{.max_length = 100, .min_length = 30};
  c.limit_length(50);
  EXPECT_EQ(c.max_length, 50);
  EXPECT_EQ(c.min_length, 30);
  c.limit_length(24);
  EXPECT_EQ(c.min_length, 23);
  EXPECT_NO_THROW(c.validate());
  c.limit_length(0);
  EXPECT_THAT(message_of<ConfigError>([&] { c.validate(); }), HasSubstr("max_length = 0"));
}

TEST(GenerationConfig, GroupsGiveWayToTheBeamThatIsAskedFor) {
  GenerationConfig c{.beam_size = 4, .beam_groups = 4};
  c.resize_beam(8);
  EXPECT_EQ(c.beam_size, 8);
  EXPECT_EQ(c.beam_groups, 4);
  c.resize_beam(1);
  EXPECT_EQ(c.beam_groups, 1);
  EXPECT_NO_THROW(c.validate());
  c.beam_groups = 0;
  c.resize_beam(4);
  EXPECT_THAT(message_of<ConfigError>([&] { c.validate(); }), HasSubstr("beam_groups = 0"));
}

TEST(GenerationConfig, LengthDivisor) {
  GenerationConfig c{.length_penalty = 0.6};
  EXPECT_DOUBLE_EQ(c.length_divisor(1), 1);
  EXPECT_DOUBLE_EQ(c.length_divisor(7), std::pow(2, 0.6));
  c.length_normalization = LengthNormalization::power;
  EXPECT_DOUBLE_EQ(c.length_divisor(7), std::pow(7, 0.6));
  c.length_penalty = 0;
  EXPECT_DOUBLE_EQ(c.length_divisor(7), 1);
}

TEST(GenerationConfig, RefusesAndNames) {
  const auto refusal = [](const GenerationConfig& c) { return message_of<ConfigError>([&] { c.validate(); }); };
  EXPECT_NO_THROW(GenerationConfig{}.validate());
  EXPECT_THAT(refusal({.beam_size = 0}), HasSubstr("beam_size = 0: needs a number from 1 to 1024"));
  EXPECT_THAT(refusal({.beam_size = 1025}), HasSubstr("beam_size = 1025: needs a number from 1 to 1024"));
  EXPECT_THAT(refusal({.length_penalty = -1}), HasSubstr("length_penalty = -1"));
  EXPECT_THAT(refusal({.length_penalty = std::nan("")}), HasSubstr("length_penalty = nan"));
  EXPECT_THAT(refusal({.max_length = 0}), HasSubstr("max_length = 0"));
  EXPECT_THAT(refusal({.max_length = 16385}), HasSubstr("max_length = 16385: needs a number from 1 to 16384"));
  EXPECT_THAT(refusal({.max_length_ratio = -1}), HasSubstr("max_length_ratio = -1"));
  EXPECT_THAT(refusal({.max_length_ratio = 101}), HasSubstr("max_length_ratio = 101: needs a number from 0 to 100"));
  EXPECT_THAT(refusal({.max_length_offset = 16385}), HasSubstr("max_length_offset = 16385"));
  EXPECT_THAT(refusal({.max_length_offset = -1}), HasSubstr("max_length_offset = -1"));
  EXPECT_THAT(refusal({.coverage_penalty = -0.5}), HasSubstr("coverage_penalty = -0.5: needs a number from 0 to 10"));
  EXPECT_THAT(refusal({.patience = 0}), HasSubstr("patience = 0: needs a number above 0, at most 100"));
  EXPECT_THAT(refusal({.patience = std::nan("")}), HasSubstr("patience = nan"));
  EXPECT_THAT(refusal({.beam_groups = 0}), HasSubstr("beam_groups = 0"));
  EXPECT_THAT(refusal({.beam_size = 6, .beam_groups = 4}), HasSubstr("beam_groups = 4: has to divide beam_size = 6"));
  EXPECT_THAT(refusal({.diversity_penalty = -1}), HasSubstr("diversity_penalty = -1"));
  EXPECT_NO_THROW((GenerationConfig{.max_length = 9, .min_length = 9}).validate());
  EXPECT_THAT(refusal({.max_length = 9, .min_length = 10}), HasSubstr("min_length = 10: needs a number from 0 to 9"));
  EXPECT_THAT(refusal({.no_repeat_ngram_size = 65}), HasSubstr("needs a number from 0 to 64"));
  EXPECT_THAT(refusal({.no_repeat_ngram_size = -1}), HasSubstr("no_repeat_ngram_size = -1"));
  EXPECT_THAT(refusal({.repetition_penalty = 0}), HasSubstr("repetition_penalty = 0"));
}

// Weights that never end a sentence are nothing one can see in a folder: the search has to be bounded by itself.
TEST(GenerationConfig, TheWorkForASentenceIsBounded) {
  const auto refusal = [](const GenerationConfig& c) { return message_of<ConfigError>([&] { c.validate(); }); };
  EXPECT_NO_THROW((GenerationConfig{.beam_size = 8, .max_length = 16384}).validate());
  EXPECT_NO_THROW((GenerationConfig{.beam_size = 256, .max_length = 512}).validate());
  EXPECT_EQ(refusal({.beam_size = 256, .max_length = 513}),
            "beam_size = 256 and max_length = 513: need a product of at most 131072");
}

TEST(GenerationConfig, PhrasesAreBounded) {
  const auto refusal = [](std::vector<std::vector<int64_t>> phrases) {
    const GenerationConfig c{.suppressed_phrases = std::move(phrases)};
    return message_of<ConfigError>([&] { c.validate(); });
  };
  std::vector<std::vector<int64_t>> phrases(1 << 16, {1, 2, 3, 4});
  EXPECT_NO_THROW(GenerationConfig{.suppressed_phrases = phrases}.validate());
  phrases.front().push_back(5);
  EXPECT_EQ(refusal(phrases), "suppressed_phrases: 262145 tokens in all, at most 262144 are accepted");
  EXPECT_EQ(refusal(std::vector<std::vector<int64_t>>((1 << 16) + 1, {1})),
            "suppressed_phrases: 65537 lists of tokens, at most 65536 are accepted");
}

TEST(GenerationConfig, FieldsComeBack) {
  const GenerationConfig c{.beam_size = 7,
                           .length_penalty = 1.25,
                           .length_normalization = LengthNormalization::power,
                           .max_length = 99,
                           .max_length_ratio = 3,
                           .max_length_offset = 4,
                           .coverage_penalty = 0.2,
                           .early_stopping = EarlyStopping::patience,
                           .patience = 2,
                           .beam_groups = 7,
                           .diversity_penalty = 0.5,
                           .min_length = 3,
                           .no_repeat_ngram_size = 4,
                           .repetition_penalty = 1.5};
  GenerationConfig read;
  read_fields(write_fields(c), read, "test");
  EXPECT_EQ(read, c);
}

}  // namespace
}  // namespace attune
