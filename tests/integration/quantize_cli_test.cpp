// attune quantize from outside: the folder that it writes is used as any other, and is there whole or not at all.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/json_fields.h"
#include "attune/inference/translator.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class QuantizeCliTest : public CliFixture {
 protected:
  std::string quantized(const std::string& model, const std::string& type) const {
    const std::string out = (folder_ / ("packed-" + type)).string();
    output_of({"quantize", model, "--out", out, "--type", type});
    return out;
  }
};

TEST_F(QuantizeCliTest, TheFolderIsUsedAsAnyOther) {
  const std::vector<std::string> lines = small_text(12);
  const std::string text = file("text", joined(lines));
  for (const std::string type : {"float32", "int8", "int4"}) {
    const std::string model = quantized(model_, type);
    EXPECT_EQ(names_in(model), names_in(model_));
    EXPECT_EQ(read_weight_format(model), type == "float32" ? WeightFormat::float32
                                         : type == "int8"  ? WeightFormat::int8
                                                           : WeightFormat::int4);
    EXPECT_EQ(read_model_config(model), read_model_config(model_));
    for (const char* kept : {"tokenizer.model", "generation_config.json"})
      EXPECT_EQ(read_file(fs::path(model) / kept), read_file(fs::path(model_) / kept));

    const std::vector<std::string> found = split_lines(output_of({"translate", model, "--scores", "--file", text}));
    const std::vector<Translation> expected = Translator::load(model).translate(lines);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], fmt::format("{:.4f}\t{}", expected[i].n_best[0].score, expected[i].text()));
    if (type == "float32") {
      EXPECT_EQ(found, split_lines(output_of({"translate", model_, "--scores", "--file", text})));
    }
    const auto json = parse_json(output_of({"evaluate", model, "--source", text, "--reference", text, "--json"}), "");
    EXPECT_GT(json.at("perplexity"), 1.0);
    EXPECT_THAT(output_of({"inspect", model}), HasSubstr(type));
    EXPECT_EQ(parse_json(output_of({"inspect", model, "--json"}), "").at("memory_bytes").at("weights"),
              static_cast<int64_t>(fs::file_size(fs::path(model) / kParameterFile)));
    output_of({"inspect", model, "--attention", lines[0], "--html", (folder_ / "a.html").string()});
  }
}

TEST_F(QuantizeCliTest, LanguageModelsAndClassifiersToo) {
  const std::string language_model = (folder_ / "language").string(), classifier = (folder_ / "classifier").string();
  write_small_language_model(language_model);
  write_small_classifier(classifier);
  const std::string text = file("text.txt", joined(small_text(8)));
  const std::string labelled = file("text.tsv", "good\tThe dog sleeps.\nbad\tThe old dog.\n");
  std::map<std::string, double> perplexity;
  for (const std::string type : {"float32", "int8"}) {
    const std::string small = (folder_ / ("language-" + type)).string();
    output_of({"quantize", language_model, "--out", small, "--type", type});
    EXPECT_FALSE(output_of({"generate", small, "--prompt", "The "}).empty());
    perplexity[type] = parse_json(output_of({"evaluate", small, "--data", text, "--json"}), "").at("perplexity");
    const std::string labels = (folder_ / ("classifier-" + type)).string();
    output_of({"quantize", classifier, "--out", labels, "--type", type});
    EXPECT_EQ(split_lines(output_of({"classify", labels, "The dog sleeps.", "A"})).size(), 2u);
    parse_json(output_of({"evaluate", labels, "--data", labelled, "--json"}), "");
  }
  const double original =
      parse_json(output_of({"evaluate", language_model, "--data", text, "--json"}), "").at("perplexity");
  EXPECT_NEAR(perplexity["float32"], original, 1e-4 * original);
  EXPECT_NEAR(perplexity["int8"], original, 0.1 * original);
}

TEST_F(QuantizeCliTest, ReportsSizes) {
  const std::string out = (folder_ / "small").string();
  const auto json = parse_json(output_of({"quantize", model_, "--out", out, "--json"}), "");
  EXPECT_EQ(json.at("type"), "int8");
  EXPECT_EQ(json.at("bytes_before"), static_cast<int64_t>(fs::file_size(fs::path(model_) / kParameterFile)));
  EXPECT_EQ(json.at("bytes_after"), static_cast<int64_t>(fs::file_size(fs::path(out) / kParameterFile)));
  EXPECT_GT(json.at("ratio"), 1.0);
  EXPECT_THAT(output_of({"quantize", model_, "--out", (folder_ / "other").string()}),
              AllOf(HasSubstr("wrote "), HasSubstr(" parameters in int8"), HasSubstr("times smaller")));
}

TEST_F(QuantizeCliTest, WhatCannotBeIsRefused) {
  const std::string small = quantized(model_, "int8"), other = (folder_ / "other").string();
  EXPECT_THAT(refusal(run_attune({"quantize", model_})), HasSubstr("--out"));
  EXPECT_THAT(refusal(run_attune({"quantize", model_, "--out", small})), HasSubstr("is there already"));
  EXPECT_THAT(refusal(run_attune({"quantize", model_, "--out", model_})), HasSubstr("is there already"));
  EXPECT_THAT(refusal(run_attune({"quantize", model_, "--out", other, "--type", "int2"})),
              HasSubstr("--type int2: needs one of float32, bfloat16, int8, int4"));
  EXPECT_THAT(refusal(run_attune({"quantize", small, "--out", other})), HasSubstr("int8 panels"));
  EXPECT_THAT(refusal(run_attune({"quantize", (folder_ / "none").string(), "--out", other})), HasSubstr("config.json"));
  EXPECT_THAT(refusal(run_attune({"quantize", model_, "--out", file("file", "x") + "/below"})),
              HasSubstr("Not a directory"));
  const std::string text = file("text", joined(small_text(8)));
  const auto train = [&](const std::string& from) {
    return run_attune({"train", "--out", (folder_ / "run").string(), "--set", "train.initialize_from=" + from, "--set",
                       "data.train_source=" + text, "--set", "data.train_target=" + text, "--set",
                       "data.valid_source=" + text, "--set", "data.valid_target=" + text});
  };
  EXPECT_THAT(split_lines(train(small).errors).back(),
              HasSubstr("its weights are int8 panels; training needs the model that it was made from"));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(QuantizeCliTest, TheFolderIsThereWholeOrNotAtAll) {
  fs::create_directory(folder_ / "out");
  const std::string out = (folder_ / "out" / "small").string();
  const auto run =
      run_command({"bash", "-c", "ulimit -f 8; exec \"$0\" \"$@\"", attune_binary(), "quantize", model_, "--out", out});
  EXPECT_THAT(refusal(run), HasSubstr("cannot write"));
  EXPECT_EQ(names_in(folder_ / "out"), std::vector<std::string>{});
}

}  // namespace
}  // namespace attune
