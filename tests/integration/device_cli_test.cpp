// --device at every command: on a GPU each says what it says on the CPU. Builds with CUDA run it, on a GPU or emulated;
// others refuse it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/tensor/built_devices.h"
#include "attune/tensor/device.h"
#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// Whether there is a GPU: its kernels are in the build, and it can be used.
bool has_gpu() {
  try {
    Device::named("cuda");
    return true;
  } catch (const Error&) {
    return false;
  }
}

class DeviceCliTest : public CliFixture {
 protected:
  static void SetUpTestSuite() {
    CliFixture::SetUpTestSuite();
    write_small_language_model(*shared_ / "lm");
    write_small_classifier(*shared_ / "classifier");
    const std::vector<std::string> text = small_text(12);
    write_file(*shared_ / "text", joined(text));
    std::string labelled;
    for (size_t i = 0; i < text.size(); ++i) labelled += (i % 2 == 0 ? "good\t" : "bad\t") + text[i] + "\n";
    write_file(*shared_ / "labelled.tsv", labelled);
  }

  // Commands with a model that read text.
  static std::vector<std::vector<std::string>> commands() {
    const std::string model = *shared_ / "model", lm = *shared_ / "lm", classifier = *shared_ / "classifier";
    const std::string text = *shared_ / "text";
    return {{"translate", model, "--file", text, "--beam-size", "3"},
            {"translate", model, "--ensemble", model, "--file", text},
            {"generate", lm, "--prompt", "The dog", "--n", "2", "--draft", lm},
            {"classify", classifier, "--file", text},
            {"evaluate", lm, "--data", text},
            {"evaluate", classifier, "--data", *shared_ / "labelled.tsv"}};
  }
  static std::vector<std::string> training(const std::string& out) {
    return {"train",
            "--preset",
            "gpt-char",
            "--out",
            out,
            "--set",
            "data.train_files=" + (*shared_ / "text").string(),
            "--set",
            "data.tokenizer_type=characters",
            "--set",
            "model.d_model=16",
            "--set",
            "model.heads=2",
            "--set",
            "model.layers=1",
            "--set",
            "model.d_ff=16",
            "--set",
            "model.context_length=16",
            "--set",
            "train.batch_tokens=64",
            "--set",
            "train.steps=2",
            "--set",
            "schedule.warmup_steps=1"};
  }
  static std::vector<std::string> on_gpu(std::vector<std::string> command) {
    command.insert(command.end(), {"--device", "cuda"});
    return command;
  }
};

TEST_F(DeviceCliTest, EachCommandSaysTheSame) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  for (const std::vector<std::string>& command : commands()) {
    SCOPED_TRACE(command[0] + " " + command[1]);
    const CommandResult found = run_attune(on_gpu(command)), expected = run_attune(command);
    EXPECT_EQ(expected.status, 0) << expected.errors;
    EXPECT_EQ(found.status, expected.status) << found.errors;
    EXPECT_EQ(found.output, expected.output);
    EXPECT_EQ(found.errors, expected.errors);  // notes, of texts that were cut
  }
}

TEST_F(DeviceCliTest, VectorsAreCloseAndTrainingRuns) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  const std::vector<std::string> embed = {"embed", *shared_ / "classifier", "The dog", "A cat"};
  const auto found = json_lines(output_of(on_gpu(embed))), expected = json_lines(output_of(embed));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t c = 0; c < expected[i]["embedding"].size(); ++c)
      EXPECT_NEAR(found[i]["embedding"][c].get<double>(), expected[i]["embedding"][c].get<double>(), 1e-4);
  const CommandResult run = run_attune(on_gpu(training(folder_ / "run")));
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_THAT(read_file(folder_ / "run" / "config.toml"), HasSubstr("device = \"cuda\""));
}

TEST_F(DeviceCliTest, BenchTrainSaysWhatItTookOfTheGpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU";
  const std::vector<std::string> bench = {"bench", "train",    "--preset", "gpt-char",  "--tokens", "64",    "--steps",
                                          "1",     "--warmup", "0",        "--threads", "1",        "--json"};
  const Json found = Json::parse(output_of(on_gpu(bench)));
  const double parameters_mb = found.at("parameters").get<double>() * 4 / 1e6;
  EXPECT_GE(found.at("peak_device_memory_mb").get<double>(), 4 * parameters_mb) << "gradients and two moments";
  EXPECT_FALSE(Json::parse(output_of(bench)).contains("peak_device_memory_mb"));
}

TEST_F(DeviceCliTest, WithoutAGpuItIsRefused) {
  if (has_gpu()) GTEST_SKIP() << "there is a GPU";
  std::vector<std::vector<std::string>> all = commands();
  all.push_back({"embed", *shared_ / "classifier", "The dog"});
  all.push_back(training(folder_ / "run"));
  all.push_back({"serve", *shared_ / "model", "--port", "0"});
  all.push_back({"bench", "train", "--steps", "1"});
  all.push_back({"bench", "decode", "--contexts", "1"});
  for (const std::vector<std::string>& command : all) {
    SCOPED_TRACE(command[0]);
    const std::string errors = refusal_of(on_gpu(command));
    EXPECT_THAT(errors, HasSubstr(kBuiltWithCuda ? "cuda" : "Attune was built without CUDA"));
  }
  EXPECT_THAT(refusal_of({"translate", model_, "A dog", "--device", "gpu"}),
              HasSubstr("device = gpu: needs cpu, cuda, or cuda:N with the number of a GPU"));
}

}  // namespace
}  // namespace attune
