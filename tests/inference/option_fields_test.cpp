#include "attune/inference/option_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace attune {
namespace {

TEST(OptionFields, WhatIsNotGivenStaysTheFoldersOwn) {
  const EmbedFields none = embed_fields(Json::object());
  EXPECT_FALSE(none.options.pooling);
  EXPECT_FALSE(none.options.normalize);
  EXPECT_EQ(none.options.batch_texts, EmbedOptions{}.batch_texts);
  const EmbedFields given = embed_fields({{"pooling", "max"}, {"normalize", false}, {"threads", 3}});
  EXPECT_EQ(given.options.pooling, TextPooling::max);
  EXPECT_EQ(given.options.normalize, false);
  EXPECT_EQ(given.threads, 3);

  EXPECT_FALSE(classify_fields(Json::object()).options.max_tokens);
  const ClassifyFields labels = classify_fields({{"max_tokens", 7}, {"batch_texts", 2}});
  EXPECT_EQ(labels.options.max_tokens, 7);
  EXPECT_EQ(labels.options.batch_texts, 2);
}

TEST(OptionFields, ATimeoutIsADeadline) {
  EXPECT_FALSE(DecodingFields{}.deadline());
  const auto now = std::chrono::steady_clock::now();
  const auto deadline = DecodingFields{.timeout_seconds = 60}.deadline();
  ASSERT_TRUE(deadline);
  EXPECT_GE(*deadline, now + std::chrono::seconds(60));
  EXPECT_LT(*deadline, now + std::chrono::seconds(600));
  EXPECT_TRUE(message_of<ConfigError>([] {
                DecodingFields{.timeout_seconds = -1}.deadline();
              }).starts_with("options.timeout_seconds"));
}

TEST(OptionFields, AnUnknownNameIsRefused) {
  EXPECT_TRUE(message_of<ConfigError>([] {
                embed_fields({{"poolling", "max"}});
              }).find("poolling") != std::string::npos);
  EXPECT_THROW(classify_fields({{"n_best", 2}}), ConfigError);
}

}  // namespace
}  // namespace attune
