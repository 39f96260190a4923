// attune bench and attune demo-corpus: what other programs read of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/train/config.h"
#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class BenchTest : public ::testing::Test {
 protected:
  static std::vector<std::string> small(const std::string& what, const std::vector<std::string>& more) {
    std::vector<std::string> words = small_of("encoder_decoder", what);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> small_of(const std::string& architecture, const std::string& what, int steps = 2) {
    std::vector<std::string> words = {"bench",    what, "--json",    "--steps", std::to_string(steps),
                                      "--warmup", "1",  "--threads", "1"};
    for (const char* length : {"--source-length=5", "--target-length=6"}) words.emplace_back(length);
    const std::string vocab = architecture == "encoder_decoder" ? "source_vocab=50" : "vocab=50";
    for (const std::string& assignment :
         {"architecture=" + architecture, std::string("d_model=32"), std::string("heads=4"), std::string("layers=1"),
          std::string("d_ff=64"), vocab}) {
      words.emplace_back("--set");
      words.push_back("model." + assignment);
    }
    return words;
  }
  /// One JSON object on one line, with these fields as positive numbers.
  static Json measured(const std::vector<std::string>& words, const std::vector<std::string>& numbers,
                       const std::string& note = "") {
    const std::vector<std::string> lines = split_lines(output_of(words, "", note));
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
    // The system counts in KiB.
    const double kib = json.value("peak_memory_mb", 0.0) * 1e6 / 1024;
    EXPECT_NEAR(kib, std::round(kib), 1e-6) << "a megabyte has 10^6 bytes";
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
  EXPECT_EQ(json.at("architecture"), "encoder_decoder");
  EXPECT_EQ(json.at("tokens"), "target");
  EXPECT_EQ(json.at("tokens_per_s"), json.at("target_tokens_per_s"));
  EXPECT_NEAR(json.at("target_tokens_per_s").get<double>() / json.at("source_tokens_per_s").get<double>(), 6.0 / 5,
              0.01);
  EXPECT_LT(json.at("share_of_peak").get<double>(), 1);
  EXPECT_NE(json.at("loss_first"), json.at("loss_last")) << "it trains";
}

TEST_F(BenchTest, TrainTakesAPrecision) {
  const Json exact = measured(small("train", {"--tokens", "60"}), kTrainNumbers);
  const std::string note = precision_note(ProductPrecision::bfloat16, Device{});
  const Json narrow = measured(small("train", {"--tokens", "60", "--set", "train.precision=bfloat16"}), kTrainNumbers,
                               note.empty() ? "" : "attune: " + note + "\n");
  EXPECT_NE(narrow.at("loss_first"), exact.at("loss_first"));
  EXPECT_NEAR(narrow.at("loss_first").get<double>(), exact.at("loss_first").get<double>(), 0.02);
}

TEST_F(BenchTest, TrainMeasuresEveryArchitectureByItsInput) {
  std::vector<std::string> numbers = {"tokens_per_s"};
  for (const std::string& name : kTrainNumbers)
    if (!name.ends_with("_tokens_per_s")) numbers.push_back(name);
  // An untrained model of n classes is as unsure as one that guesses: ln(n), or more where its logits are large.
  const auto train = [&](const std::string& architecture, int64_t tokens, double least_loss,
                         const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = small_of(architecture, "train", 1);
    words.insert(words.end(), {"--tokens", std::to_string(tokens)});
    words.insert(words.end(), more.begin(), more.end());
    const Json json = measured(words, numbers);
    EXPECT_EQ(json.at("architecture"), architecture);
    EXPECT_EQ(json.at("tokens"), "input");
    EXPECT_FALSE(json.contains("source_tokens_per_s"));
    EXPECT_NE(json.at("loss_first"), json.at("loss_last")) << "it trains";
    EXPECT_GT(json.at("loss_first").get<double>(), least_loss);
    return json.at("tokens_per_s").get<double>() * json.at("median_ms_per_step").get<double>() / 1e3;  // of a step
  };
  EXPECT_NEAR(train("encoder_classifier", 24, 0.1), 20, 1e-6);
  EXPECT_NEAR(train("encoder_masked_lm", 24, 2.5), 20, 1e-6);
  EXPECT_NEAR(train("decoder_lm", 24, 2.5, {"--set", "model.context_length=8"}), 24, 1e-6);
  EXPECT_NEAR(train("decoder_lm", 7, 2.5, {"--set", "model.context_length=8"}), 8, 1e-6) << "at least one window";
}

TEST_F(BenchTest, TrainTakesAPreset) {
  const std::vector<std::string> words = {"bench", "train",    "--preset", "gpt-char",  "--tokens", "64",    "--steps",
                                          "1",     "--warmup", "0",        "--threads", "1",        "--json"};
  const Json preset = measured(words, {"tokens_per_s"});
  EXPECT_EQ(preset.at("architecture"), "decoder_lm");
  EXPECT_EQ(preset.at("parameters"), 805248);
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--set", "model.vocab=69"});
  EXPECT_EQ(measured(more, {}).at("parameters").get<int64_t>() - preset.at("parameters").get<int64_t>(), 4 * 128);
  more = words;
  more[3] = "gpt-chat";
  EXPECT_THAT(refusal(run_attune(more)), HasSubstr("did you mean \"gpt-char\"?"));
}

TEST_F(BenchTest, RefusesWhatAnArchitectureDoesNotHave) {
  const std::string file = (folder_ / "batches.jsonl").string();
  const auto complaint = [](const std::string& what, const std::vector<std::string>& more) {
    std::vector<std::string> words = small_of("decoder_lm", what);
    words.insert(words.end(), more.begin(), more.end());
    return refusal(run_attune(words));
  };
  EXPECT_EQ(complaint("train", {"--write-batches", file}),
            "attune: --write-batches: needs model.architecture = \"encoder_decoder\", found \"decoder_lm\"\n");
  EXPECT_FALSE(fs::exists(file));
  write_file(file, "");
  EXPECT_THAT(complaint("train", {"--batches", file}), HasSubstr("attune: --batches: needs model.architecture"));
  EXPECT_THAT(complaint("translate", {}), HasSubstr("attune: bench translate: needs model.architecture"));
  for (const char* architecture : {"encoder_classifier", "encoder_masked_lm"}) {
    const std::vector<std::string> words = {"bench", "train", "--source-length",
                                            "2",     "--set", std::string("model.architecture=") + architecture};
    EXPECT_THAT(refusal(run_attune(words)), HasSubstr("--source-length 2: "));
  }
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
  write_file(file, "{\"source\": [[-5, 3]], \"target\": [[5, 3]]}\n");
  EXPECT_THAT(refusal(run_attune(small("train", {"--batches", file}))),
              HasSubstr("batches.jsonl:1: token id -5 is not between 0 and 2147483647"));
  const std::string batch = R"({"source": [[5, 3]], "target": [[6, 3]])";
  write_file(file, batch + "}\n" + batch + R"(, "target": [[7, 3]]})" + "\n");
  EXPECT_THAT(refusal(run_attune(small("train", {"--batches", file}))),
              HasSubstr("batches.jsonl:2: JSON has key \"target\" twice"));
  write_file(file, batch + "}" + '\0' + "junk\n");
  EXPECT_THAT(refusal(run_attune(small("train", {"--batches", file}))),
              HasSubstr("batches.jsonl:1: is not valid JSON at byte 41"));
}

TEST_F(BenchTest, TrainProfilesItsOperations) {
  const Json json = measured(small("train", {"--tokens", "60", "--profile"}), kTrainNumbers);
  std::set<std::string> names;
  double shares = 0, milliseconds = 0, longest = 1;
  for (const Json& row : json.at("profile")) {
    const auto name = row.at("operation").get<std::string>();
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_GT(row.at("calls_per_step"), 0) << name;
    // The loss forms its gradients on the way forward.
    const bool has_products = name.starts_with("linear") && name != "linear_cross_entropy backward";
    EXPECT_EQ(row.contains("gflops_per_s"), has_products) << name;
    EXPECT_EQ(row.contains("gflops_per_s"), row.contains("share_of_peak")) << name;
    if (name != "other") {
      EXPECT_LE(row.at("share_of_step").get<double>(), longest) << name;
      longest = row.at("share_of_step").get<double>();
    }
    shares += row.at("share_of_step").get<double>();
    milliseconds += row.at("ms_per_step").get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_GT(milliseconds, 0);  // of two steps the median is the mean, and the profile's clock runs within the other
  EXPECT_LE(milliseconds, json.at("median_ms_per_step").get<double>());
  for (const char* name : {"linear", "linear backward", "attention", "attention backward", "embedding", "batch", "adam",
                           "embedding backward", "gradient norm", "gradient accumulation"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(json.at("profile").back().at("operation"), "other");
  EXPECT_EQ(json.at("profile").back().at("calls_per_step"), 1);

  const std::vector<std::string> words = {
      "bench",        "train", "--tokens",       "60",    "--threads",        "1",     "--warmup",      "0",
      "--profile",    "--set", "model.layers=1", "--set", "model.d_model=32", "--set", "model.d_ff=32", "--set",
      "model.heads=2"};
  const std::string table = output_of(words);
  for (const char* text : {"loss_last", "operation ", "of peak", "\nlinear backward ", "\nother "})
    EXPECT_THAT(table, HasSubstr(text));
}

TEST_F(BenchTest, ReduceNeedsSeveralRanks) {
  EXPECT_THAT(refusal_of({"bench", "reduce"}), HasSubstr("bench reduce: needs several ranks"));
  EXPECT_THAT(refusal_of({"bench", "reduce", "--bytes", "3"}), HasSubstr("--bytes 3"));
  EXPECT_THAT(refusal_of({"bench", "reduce", "--rounds", "0"}), HasSubstr("--rounds 0"));
}

TEST_F(BenchTest, TrainWritesATraceOfOneStep) {
  const std::string file = (folder_ / "step.json").string();
  EXPECT_FALSE(measured(small("train", {"--tokens", "60", "--trace", file}), kTrainNumbers).contains("profile"));
  const Json events = Json::parse(read_file(file)).at("traceEvents");
  int64_t steps = 0, products = 0;
  double end = 0;
  for (const Json& event : events)
    if (event.at("name") == "step") end = event.at("dur").get<double>();
  for (const Json& event : events) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(), end * (1 + 1e-9));
    for (const char* id : {"pid", "tid"}) EXPECT_TRUE(event.at(id).is_number_integer());
    steps += event.at("name") == "step" ? 1 : 0;
    if (event.at("name") == "linear") products += event.at("args").at("flops").get<int64_t>() > 0 ? 1 : 0;
  }
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(products, 4 + 7) << "of an encoder layer and a decoder layer";
  EXPECT_THAT(refusal(run_attune(small("train", {"--tokens", "60", "--trace", (folder_ / "no" / "a").string()}))),
              HasSubstr("no/a"));
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

TEST_F(BenchTest, MachineSaysWhatItCanDo) {
  const Json json = measured({"bench", "machine", "--threads", "1", "--json"},
                             {"float32_gflops_per_s", "memory_read_gb_per_s", "memory_triad_gb_per_s", "buffer_mib"});
  EXPECT_GE(json.at("buffer_mib"), 128);
  EXPECT_GE(json.at("last_level_cache_mib"), 0);
  EXPECT_NEAR(json.at("flops_per_byte").get<double>() * json.at("memory_read_gb_per_s").get<double>(),
              json.at("float32_gflops_per_s").get<double>(), 1e-6 * json.at("float32_gflops_per_s").get<double>());
  EXPECT_THAT(output_of({"bench", "machine", "--threads", "1"}), HasSubstr("memory_triad_gb_per_s"));
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

  write("same", sizes);  // the same files again
  write_file(folder / "same" / "valid.de", "my own text\n");
  fs::remove(folder / "same" / "train.en");
  std::vector<std::string> again = {"demo-corpus", "--out", (folder / "same").string()};
  again.insert(again.end(), sizes.begin(), sizes.end());
  EXPECT_THAT(refusal(run_attune(again)), HasSubstr("valid.de: is there with another text"));
  EXPECT_EQ(read_file(folder / "same" / "valid.de"), "my own text\n");
  EXPECT_FALSE(fs::exists(folder / "same" / "train.en")) << "nothing is written";

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
