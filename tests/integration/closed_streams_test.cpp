// Programs whose standard streams are closed when they start, as services and cron jobs may begin them. A file that is
// opened must not get the number of such a stream and everything that is written to it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cli_fixture.h"
#include "tests/train/reverse_task.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class ClosedStreams : public CliFixture {
 protected:
  static CommandResult run_without(int stream, const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"sh", "-c", fmt::format("exec \"$@\" {}{}&-", stream, stream == 0 ? '<' : '>'),
                                      "sh"};
    const std::vector<std::string> command = attune_command(arguments);
    words.insert(words.end(), command.begin(), command.end());
    return run_command(words);
  }
};

TEST_F(ClosedStreams, TranslationsInAFileAreAsEver) {
  const std::string input = file("in", joined(small_text(4)));
  const std::vector<std::string> begin = {"translate", model_, "--file", input, "--output"};
  for (const int stream : {-1, 0, 1, 2}) {
    std::vector<std::string> words = begin;
    words.push_back((folder_ / fmt::format("out{}", stream)).string());
    const CommandResult result = stream < 0 ? run_attune(words) : run_without(stream, words);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(read_file(words.back()), read_file(folder_ / "out-1")) << "without stream " << stream;
  }
}

TEST_F(ClosedStreams, WhatIsWrittenToOneIsAnError) {
  EXPECT_THAT(refusal(run_without(1, {"translate", model_, "A dog."})), HasSubstr("cannot write standard output"));
  EXPECT_THAT(refusal(run_without(0, {"translate", model_})), HasSubstr("standard input"));
  EXPECT_EQ(run_without(2, {"translate", model_, "A dog."}).output, run_attune({"translate", model_, "A dog."}).output);
}

TEST_F(ClosedStreams, FilesOfARunHoldWhatTheyShould) {
  write_reverse_text(folder_, "train", 50, 2, 5, 1);
  write_reverse_text(folder_, "valid", 5, 2, 5, 2);
  RunConfig config = reverse_config(folder_);
  config.train.steps = 4;
  config.train.log_every = 1;
  const std::string run_file = file("run.toml", write_toml(config));
  const auto bytes_of_events = [&](const std::string& run) {
    std::vector<int64_t> sizes;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / run))
      if (entry.path().filename().string().starts_with("events.")) sizes.push_back(file_bytes(entry.path()));
    return sizes;
  };
  run_attune({"train", run_file, "--out", (folder_ / "run").string()});
  for (const int stream : {0, 1, 2}) {
    const std::string name = fmt::format("run{}", stream);
    EXPECT_EQ(run_without(stream, {"train", run_file, "--out", (folder_ / name).string()}).status, 0);
    EXPECT_EQ(metrics_of(folder_ / name), metrics_of(folder_ / "run")) << "without stream " << stream;
    EXPECT_EQ(bytes_of_events(name), bytes_of_events("run"));
  }
}

}  // namespace
}  // namespace attune
