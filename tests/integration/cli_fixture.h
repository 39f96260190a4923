#pragma once
// What the tests of the subcommands share: a small model with random weights, a folder each, and how a run that has to
// succeed or to fail looks from outside.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/file.h"
#include "attune/base/json.h"
#include "tests/support/run_command.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {

/// The output of a run that has to succeed with nothing but `note` on standard error.
inline std::string output_of(std::vector<std::string> arguments, const std::string& input = "",
                             const std::string& note = "") {
  const CommandResult result = run_attune(std::move(arguments), {.input = input});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, note);
  return result.output;
}

/// The message of a run that has to fail: one line that begins with the program's name.
inline std::string refusal(const CommandResult& result) {
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
  EXPECT_GT(result.status, 0);
  EXPECT_EQ(split_lines(result.errors).size(), 1u) << result.errors;
  EXPECT_EQ(result.errors.substr(0, 8), "attune: ");
  return result.errors;
}

inline std::string refusal_of(std::vector<std::string> arguments, const std::string& input = "") {
  return refusal(run_attune(std::move(arguments), {.input = input}));
}

/// The objects of JSON lines.
inline std::vector<Json> json_lines(const std::string& text) {
  std::vector<Json> lines;
  for (const std::string& line : split_lines(text)) lines.push_back(Json::parse(line));
  return lines;
}

/// How often a text has a part.
inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class CliFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("OMP_NUM_THREADS", "1", 0);  // the models are too small for more
    shared_ = std::make_unique<TemporaryFolder>();
    write_small_model(*shared_ / "model");
  }
  static void TearDownTestSuite() { shared_.reset(); }

  std::string file(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
    return (folder_ / name).string();
  }

  static inline std::unique_ptr<TemporaryFolder> shared_;
  const std::string model_ = (*shared_ / "model").string();
  TemporaryFolder folder_;
};

}  // namespace attune
