// Word alignments from outside: the demo's gold alignments, training on them, and their error rate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AlignmentCliTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("OMP_NUM_THREADS", "1", 0);  // the models are too small for more
    shared_ = std::make_unique<TemporaryFolder>();
    run_attune(
        {"demo-corpus", "--out", (*shared_ / "data").string(), "--train", "3000", "--valid", "5", "--test", "60"});
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static std::string data(const std::string& name) { return (*shared_ / "data" / name).string(); }

  // The arguments of a small training run into the folder `run`.
  std::vector<std::string> training(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"train", "--out", (folder_ / run).string()};
    std::vector<std::string> settings = {"data.train_source=" + data("train.en"),
                                         "data.train_target=" + data("train.de"),
                                         "data.vocab_size=500",
                                         "model.d_model=32",
                                         "model.heads=2",
                                         "model.layers=2",
                                         "model.d_ff=64",
                                         "train.steps=150",
                                         "train.batch_tokens=600",
                                         "schedule.kind=constant",
                                         "schedule.learning_rate=3e-3",
                                         "schedule.warmup_steps=20"};
    settings.insert(settings.end(), more.begin(), more.end());
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    return words;
  }
  std::vector<std::string> evaluation(const std::string& run) const {
    return {"evaluate",     (folder_ / run / "model").string(),
            "--source",     data("test.en"),
            "--reference",  data("test.de"),
            "--beam-size",  "1",
            "--alignments", data("test.align")};
  }
  Json evaluate(const std::string& run) const {
    std::vector<std::string> words = evaluation(run);
    words.emplace_back("--json");
    const CommandResult result = run_attune(words);
    EXPECT_EQ(result.status, 0) << result.errors;
    return Json::parse(result.output);
  }
  void train(const std::string& run, const std::vector<std::string>& more = {}) const {
    const CommandResult result = run_attune(training(run, more));
    ASSERT_EQ(result.status, 0) << result.errors;
  }

  static inline std::unique_ptr<TemporaryFolder> shared_;
  TemporaryFolder folder_;
};

TEST_F(AlignmentCliTest, GuidedTrainingMakesFewerAlignmentErrors) {
  train("plain");
  train("guided", {"data.train_alignments=" + data("train.align"), "train.guided_alignment=1"});
  EXPECT_THAT(read_file(folder_ / "guided" / "metrics.jsonl"), HasSubstr("\"guided_loss\":"));
  EXPECT_THAT(read_file(folder_ / "plain" / "metrics.jsonl"), Not(HasSubstr("guided_loss")));
  const Json plain = evaluate("plain"), guided = evaluate("guided");
  EXPECT_EQ(plain["alignment_origin"], "mean of layer 2");
  EXPECT_EQ(guided["alignment_origin"], "layer 2, head 1");
  EXPECT_EQ(guided["aer"], guided["aer_of_heads"][1][0]);
  double best_head = 100;
  for (const Json& layer : plain["aer_of_heads"])
    for (const Json& rate : layer) best_head = std::min(best_head, rate.get<double>());
  EXPECT_LT(guided["aer"].get<double>(), plain["aer"].get<double>() - 10);
  EXPECT_LT(guided["aer"].get<double>(), best_head - 10);

  const CommandResult table = run_attune(evaluation("guided"));
  EXPECT_THAT(table.output, HasSubstr("alignment errors, layer 2, head 1: precision "));
  const std::string aligned =
      run_attune({"translate", (folder_ / "guided" / "model").string(), "--alignments", "The old dog sleeps."}).output;
  EXPECT_THAT(aligned, HasSubstr("\t0-0"));
}

TEST_F(AlignmentCliTest, TheDemoHasAnAlignmentForEachPair) {
  for (const std::string name : {"train", "valid", "test"}) {
    const size_t pairs = split_lines(read_file(data(name + ".en"))).size();
    EXPECT_EQ(split_lines(read_file(data(name + ".align"))).size(), pairs);
  }
  EXPECT_EQ(split_lines(read_file(data("test.align")))[0], "0-0 1-1 2-2 3-3 4-6 5-4 6-5");
}

TEST_F(AlignmentCliTest, WhatIsWrongIsSaidInOneLine) {
  const std::string bad = (folder_ / "bad.align").string(), given = "data.train_alignments=" + bad;
  std::vector<std::string> lines = split_lines(read_file(data("train.align")));
  lines[2] = "0-0 77-1";
  write_file(bad, joined(lines));
  EXPECT_THAT(refusal(run_attune(training("run", {given}))),
              HasSubstr("bad.align:3: 77-1 is outside of the sentences, which have "));
  lines[2] = "0-0 1";
  write_file(bad, joined(lines));
  EXPECT_THAT(refusal(run_attune(training("run", {given}))), HasSubstr("bad.align:3: \"1\" is no pair of words"));
  lines.pop_back();
  lines[2] = "";
  write_file(bad, joined(lines));
  EXPECT_THAT(refusal(run_attune(training("run", {given}))), HasSubstr("train.en has 3000 lines but "));
  EXPECT_THAT(refusal(run_attune(training("run", {"data.train_alignments=[\"a\", \"b\"]"}))),
              HasSubstr("data.train_alignments names 2 files but data.train_source names 1"));
  std::vector<std::string> prepare = training("prepared", {given});
  prepare[0] = "prepare";
  prepare.insert(prepare.begin(), "data");
  EXPECT_THAT(refusal(run_attune(prepare)), HasSubstr("data.train_alignments names "));
  EXPECT_THAT(refusal(run_attune({"train", "--out", (folder_ / "run").string(), "--set", given, "--set",
                                  "data.prepared=" + folder_.path().string()})),
              HasSubstr("data.train_alignments names "));
  EXPECT_THAT(refusal(run_attune(training("run", {"model.alignment_layer=3"}))),
              HasSubstr("model.alignment_layer = 3"));
  EXPECT_THAT(refusal(run_attune({"evaluate", "--hypotheses", data("test.de"), "--reference", data("test.de"),
                                  "--alignments", data("test.align")})),
              HasSubstr("--alignments"));
}

}  // namespace
}  // namespace attune
