// attune bench and attune demo-corpus: what other programs read of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attune/base/fields.h"
#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class BenchTest : public ::testing::Test {
 protected:
  static std::vector<std::string> small(const std::string& what, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"bench", what,        "--json", "--steps",         "2", "--warmup",
                                      "1",     "--threads", "1",      "--source-length", "5", "--target-length",
                                      "6"};
    for (const char* assignment : {"d_model=32", "heads=4", "layers=1", "d_ff=64", "source_vocab=50"}) {
      words.emplace_back("--set");
      words.push_back(std::string("model.") + assignment);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// One JSON object on one line, with these fields as positive numbers.
  static Json measured(const std::vector<std::string>& words, const std::vector<std::string>& numbers) {
    const std::vector<std::string> lines = split_lines(output_of(words));
    if (lines.size() != 1) {
      ADD_FAILURE() << lines.size() << " lines";
      return {};
    }
    Json json = Json::parse(lines[0]);
    EXPECT_EQ(json.at("program"), "attune");
    EXPECT_EQ(json.at("threads"), 1);
    for (const std::string& name : numbers) {
      EXPECT_TRUE(json.at(name).is_number()) << name;
      EXPECT_GT(json.at(name).get<double>(), 0) << name;
    }
    return json;
  }
  TemporaryFolder folder_;
};

const std::vector<std::string> kTrainNumbers = {"parameters",          "median_ms_per_step",
                                                "target_tokens_per_s", "source_tokens_per_s",
                                                "gflops_per_s",        "machine_peak_gflops_per_s",
                                                "share_of_peak",       "peak_memory_mb",
                                                "loss_first",          "loss_last"};

TEST_F(BenchTest, TrainMeasuresStepsOnRandomBatches) {
  const Json json = measured(small("train", {"--tokens", "60"}), kTrainNumbers);
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_NEAR(json.at("target_tokens_per_s").get<double>() / json.at("source_tokens_per_s").get<double>(), 6.0 / 5,
              0.01);
  EXPECT_LT(json.at("share_of_peak").get<double>(), 1);
  EXPECT_NE(json.at("loss_first"), json.at("loss_last")) << "it trains";
}

TEST_F(BenchTest, TrainWritesItsBatchesAndReadsThemAgain) {
  const std::string file = (folder_ / "batches.jsonl").string();
  EXPECT_EQ(output_of(small("train", {"--tokens", "60", "--write-batches", file})), "");
  const std::vector<std::string> lines = split_lines(read_file(file));
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    const Json batch = Json::parse(line);
    ASSERT_EQ(batch.at("source").size(), batch.at("target").size());
    for (const Json& sentence : batch.at("target")) EXPECT_EQ(sentence.back(), 3) << "eos";
  }
  const Json read = measured(small("train", {"--batches", file}), kTrainNumbers);
  const Json drawn = measured(small("train", {"--tokens", "60"}), kTrainNumbers);
  EXPECT_EQ(read.at("loss_last"), drawn.at("loss_last")) << "the same batches, the same numbers";

  write_file(file, "{\"source\": [[5, 3]], \"target\": []}\n");
  EXPECT_THAT(refusal(run_attune(small("train", {"--batches", file}))), HasSubstr("batches.jsonl:1: "));
}

TEST_F(BenchTest, TranslateMeasuresDecodingAndCountsTheCache) {
  const std::vector<std::string> numbers = {"parameters",          "cache_bytes_per_source_token",
                                            "median_ms_per_batch", "cache_bytes_per_target_token",
                                            "target_tokens_per_s", "peak_memory_mb"};
  const Json standard = measured(small("translate", {"--sentences", "3", "--beam-size", "2"}), numbers);
  EXPECT_EQ(standard.at("sentences"), 3);
  EXPECT_EQ(standard.at("beam_size"), 2);
  EXPECT_EQ(standard.at("cache_bytes_per_target_token"), 2 * 32 * 4.0);
  const Json latent =
      measured(small("translate", {"--sentences", "3", "--set", "model.decoder_attention=latent"}), numbers);
  EXPECT_EQ(latent.at("cache_bytes_per_target_token"), 32 / 4 * 4.0);
  EXPECT_THAT(refusal(run_attune(small("translate", {"--sentences", "0"}))), HasSubstr("--sentences"));
}

TEST(DemoCorpus, WritesThreePartsThatShareNoSentence) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"demo-corpus", "--out", (folder / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_attune(words);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_EQ(result.output, "");
    return result.errors;
  };
  const auto lines = [&](const std::string& name) { return split_lines(read_file(folder / name)); };
  const std::vector<std::string> sizes = {"--train", "300", "--valid", "20", "--test", "30"};
  EXPECT_THAT(write("a/b", sizes), HasSubstr("wrote 300 + 20 + 30 English-German pairs to "));
  for (const std::string side : {"en", "de"}) {
    std::set<std::string> seen;
    for (const auto& [part, size] : {std::pair{"train", 300u}, {"valid", 20u}, {"test", 30u}}) {
      const std::vector<std::string> text = lines(std::string("a/b/") + part + "." + side);
      EXPECT_EQ(text.size(), size);
      seen.insert(text.begin(), text.end());
    }
    EXPECT_EQ(seen.size(), 350u) << side;
    EXPECT_EQ(seen.count(""), 0u);
  }
  write("same", sizes);
  EXPECT_EQ(lines("same/train.de"), lines("a/b/train.de"));
  std::vector<std::string> other = sizes;
  other.insert(other.end(), {"--seed", "7"});
  write("other", other);
  EXPECT_NE(lines("other/train.de"), lines("a/b/train.de"));

  const std::string out = (folder / "c").string();
  EXPECT_THAT(refusal(run_attune({"demo-corpus", "--out", out, "--train", "-1"})), HasSubstr("train = -1"));
  EXPECT_THAT(refusal(run_attune({"demo-corpus", "--out", out, "--train", "100000000"})), HasSubstr("1000000 pairs"));
  EXPECT_THAT(refusal(run_attune({"demo-corpus"})), HasSubstr("--out"));
  EXPECT_FALSE(fs::exists(folder / "c"));
  write_file(folder / "file", "");
  EXPECT_THAT(refusal(run_attune({"demo-corpus", "--out", (folder / "file").string(), "--train", "10"})),
              HasSubstr("file"));
}

}  // namespace
}  // namespace attune
