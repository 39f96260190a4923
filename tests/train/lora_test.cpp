// Runs with adapters, frozen parameters and rates by layer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "attune/hub/adapter_folder.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/build.h"
#include "attune/models/encoder_classifier.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/tensor/host_view.h"
#include "attune/train/trained_parts.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoraTest : public ::testing::Test {
 protected:
  LoraTest() {
    write_keyword_text(folder_ / "train.tsv", 120, 1);
    write_keyword_text(folder_ / "valid.tsv", 20, 2);
    config_ = keyword_config(folder_);
    config_.train.steps = 3;
    train(config_, folder_ / "base");
    config_.train.initialize_from = (folder_ / "base").string();
    config_.train.steps = 20;
  }
  std::map<std::string, std::string> base() const {
    return tensors_of(folder_ / "base" / "model" / "model.safetensors");
  }
  std::map<std::string, std::string> model(const std::string& run) const {
    return tensors_of(folder_ / run / "model" / "model.safetensors");
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

TEST_F(LoraTest, TrainsAdaptersAlone) {
  config_.lora = {.rank = 2, .dropout = 0.1, .targets = {"w_q", "linear_1"}};
  train(config_, folder_ / "run");
  const auto checkpoint = tensors_of(checkpoint_file(folder_ / "run", 20));
  for (const auto& [name, bytes] : checkpoint) EXPECT_THAT(name, HasSubstr(".lora.")) << "the base is not stored";
  EXPECT_EQ(checkpoint.size(), 2 * 2 * 3) << "A and B of two projections, with two moments each";
  const auto before = base(), after = model("run");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, bytes] : after) {
    const bool adapted = name.ends_with("w_q.weight") || name.ends_with("linear_1.weight");
    EXPECT_EQ(bytes != before.at(name), adapted) << name;
  }
}

// The model knows the keyword, and the labels are then exchanged: adapters alone learn the exchange.
TEST_F(LoraTest, AdaptersAloneLearn) {
  const auto exchanged = [&](const char* name) {
    const std::map<std::string, std::string> other = {{"red", "green"}, {"green", "blue"}, {"blue", "red"}};
    std::istringstream lines(read_file(folder_ / name));
    std::string text;
    for (std::string label, words; std::getline(lines, label, '\t') && std::getline(lines, words);)
      text += other.at(label) + "\t" + words + "\n";
    write_file(folder_ / name, text);
  };
  config_.train.steps = 100;
  config_.train.initialize_from.clear();
  const auto accuracy = [](const TrainedRun& run) { return run.seen.validations.back().classification->accuracy; };
  ASSERT_GT(accuracy(train(config_, folder_ / "taught")), 0.9);
  exchanged("train.tsv");
  exchanged("valid.tsv");
  config_.train.initialize_from = (folder_ / "taught").string();
  config_.schedule.learning_rate = 1e-2;
  config_.lora = {.rank = 4, .targets = {"all"}};
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_GT(run.seen.steps.front().loss, 1.5) << "what the model knew is wrong now";
  EXPECT_GT(accuracy(run), 0.9);
}

// A step whose only layer with adapters is left out trains nothing, and the run goes on.
TEST_F(LoraTest, LayersThatAreAllLeftOutTrainNothing) {
  config_.lora = {.rank = 2, .targets = {"w_q"}};
  config_.train.layer_dropout = 0.5;
  const TrainedRun run = train(config_, folder_ / "run");
  const auto still = std::ranges::count_if(run.seen.steps, [](const auto& step) { return step.gradient_norm == 0; });
  EXPECT_GT(still, 0);
  EXPECT_LT(still, std::ssize(run.seen.steps));
}

TEST_F(LoraTest, AResumedRunKeepsItsBaseModel) {
  config_.lora = {.rank = 2};
  train(config_, folder_ / "run");
  std::filesystem::copy(folder_ / "base", folder_ / "other", std::filesystem::copy_options::recursive);
  config_.train.initialize_from = (folder_ / "other").string();
  config_.train.steps = 30;
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run", true); }),
              HasSubstr("the adapters of the run to be resumed belong to"));
  config_.train.initialize_from = (folder_ / "base").string();
  const std::filesystem::path parameters = folder_ / "base" / "model" / "model.safetensors";
  std::string bytes = read_file(parameters);
  const std::string whole = bytes;
  bytes[bytes.size() - 1000] ^= 1;
  write_file(parameters, bytes);
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "run", true); }),
              HasSubstr("the model changed since the run to be resumed was begun"));
  write_file(parameters, whole);
  config_.train.initialize_from = (folder_ / "run" / "model" / kAdapterFolder).string();
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "another"); }), HasSubstr("is an adapter"));
}

TEST_F(LoraTest, ResumesBitForBit) {
  config_.lora = {.rank = 2, .dropout = 0.1, .targets = {"all"}};
  expect_resume_is_exact(config_, folder_);
}

TEST_F(LoraTest, AdaptersOfTheBestModelThatAreGoneAreNoticedAtOnce) {
  config_.lora = {.rank = 2};
  train(config_, folder_ / "run");
  const std::filesystem::path adapter = folder_ / "run" / "best" / kAdapterFolder;
  for (const char* file : {kAdapterConfigFile, kAdapterFile}) {
    std::filesystem::remove(adapter / file);
    const int64_t step = config_.train.steps;
    config_.train.steps += 2;
    const TrainedRun rest = train(config_, folder_ / "run", true);
    EXPECT_THAT(rest.seen.messages, ElementsAre(AllOf(HasSubstr("is forgotten: "), HasSubstr(file))));
    ASSERT_FALSE(rest.seen.validations.empty());
    EXPECT_EQ(rest.seen.validations[0].step, step);
    EXPECT_TRUE(std::filesystem::exists(adapter / file));
  }
}

TEST_F(LoraTest, TheFolderOfTheAdapterIsTheModelWithIt) {
  config_.lora = {.rank = 2, .rank_stabilized = true};
  train(config_, folder_ / "run");
  const Classifier merged = Classifier::load(folder_ / "run" / "model");
  const Classifier adapter = Classifier::load(folder_ / "run" / "model" / kAdapterFolder);
  const std::vector<Encoding> text = {merged.encode("a b red c")};
  const std::vector<float> expected = merged.logits(text).at(0), found = adapter.logits(text).at(0);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
  EXPECT_NE(found, Classifier::load(folder_ / "base" / "model").logits(text).at(0));
}

// The numbers of a parameter in int8, as products read them.
std::string widened(const std::filesystem::path& file, const std::string& name) {
  const PanelWeight panels = PanelWeight::lay_out(SafetensorsReader(file).load(name), WeightFormat::int8);
  const HostView values(panels.to_matrix());
  return {reinterpret_cast<const char*>(values.bytes().data()), values.bytes().size()};
}

TEST_F(LoraTest, TrainsOverInt8Weights) {
  config_.lora = {.rank = 2, .base_precision = BasePrecision::int8, .targets = {"w_q", "linear_1"}};
  const TrainedRun run = train(config_, folder_ / "run");
  EXPECT_EQ(tensors_of(checkpoint_file(folder_ / "run", 20)).size(), 2 * 2 * 3);
  const auto before = base(), after = model("run");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, bytes] : after) {
    const bool adapted = name.ends_with("w_q.weight") || name.ends_with("linear_1.weight");
    const bool matrix = name.find(".layers.") != std::string::npos
                            ? name.find("norm") == std::string::npos && name.ends_with(".weight")
                            : name == "head.weight";
    if (adapted)
      EXPECT_NE(bytes, widened(folder_ / "base" / "model" / "model.safetensors", name)) << name;
    else if (matrix)
      EXPECT_EQ(bytes, widened(folder_ / "base" / "model" / "model.safetensors", name)) << name;
    else
      EXPECT_EQ(bytes, before.at(name)) << name;
  }
  // What a run says of itself is what its model is, and an adapter is one of the model that it began with.
  const Classifier merged = Classifier::load(folder_ / "run" / "model");
  const Classifier adapter = Classifier::load(folder_ / "run" / "model" / kAdapterFolder);
  const std::vector<Encoding> text = {merged.encode("a b red c")};
  const std::vector<float> expected = merged.logits(text).at(0), found = adapter.logits(text).at(0);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.1) << "quantisation apart";
  EXPECT_NE(found, expected);
  config_.lora.base_precision = BasePrecision::float32;
  const TrainedRun wide = train(config_, folder_ / "wide");
  EXPECT_NEAR(run.seen.steps.front().loss, wide.seen.steps.front().loss, 0.02);
  EXPECT_EQ(run.seen.start.parameters, wide.seen.start.parameters);
}

TEST_F(LoraTest, OverInt8WeightsItResumesBitForBit) {
  config_.lora = {.rank = 2, .dropout = 0.1, .base_precision = BasePrecision::int8, .targets = {"all"}};
  expect_resume_is_exact(config_, folder_);
}

TEST_F(LoraTest, OverInt8WeightsANewHeadIsTrained) {
  write_file(folder_ / "train.tsv", "yes\ta red b\nno\tc d\nyes\tred\nno\te f g\n");
  config_.data.valid_files = {};
  config_.model.labels = {"no", "yes"};
  config_.lora = {.rank = 2, .base_precision = BasePrecision::int8};
  train(config_, folder_ / "run");
  EXPECT_TRUE(tensors_of(checkpoint_file(folder_ / "run", 20)).contains("model.head.weight"));
  EXPECT_NO_THROW(Classifier::load(folder_ / "run" / "model").classify("a b"));
}

// Every family's own: tied tables, experts, latent attention, projections that are stored as one.
TEST_F(LoraTest, ModelsOfTheHubAreTrainedOverInt8Weights) {
  write_file(folder_ / "text.txt", "the cat sat on the mat\nthe dog ran in the fog\n");
  for (const char* name : {"gpt2", "phi3", "mixtral-window", "deepseek-v3-experts"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path hub = source_dir() / "tests/hub/models" / name;
    if (!std::filesystem::exists(hub)) {
      ADD_FAILURE() << "there is no model " << hub;
      continue;
    }
    const auto run = [&](const char* precision) {
      const RunConfig config = read_run_config(
          {}, {"train.initialize_from=" + hub.string(), "data.train_files=" + (folder_ / "text.txt").string(),
               "train.steps=2", "train.batch_tokens=64", "schedule.kind=constant", "schedule.learning_rate=1e-3",
               "schedule.warmup_steps=0", "train.log_every=1", "lora.rank=2", "lora.targets=[\"all\"]",
               std::string("lora.base_precision=") + precision});
      return train(config, folder_ / (std::string(name) + precision));
    };
    const TrainedRun wide = run("float32"), int8 = run("int8");
    EXPECT_NEAR(int8.seen.steps.front().loss, wide.seen.steps.front().loss, 0.05);
    const std::filesystem::path of_wide = folder_ / (std::string(name) + "float32") / "model" / kAdapterFolder,
                                of_int8 = folder_ / (std::string(name) + "int8") / "model" / kAdapterFolder;
    const SafetensorsReader expected(of_wide / kAdapterFile), found(of_int8 / kAdapterFile);
    EXPECT_EQ(found.names(), expected.names()) << "PEFT's names";
    EXPECT_NO_THROW(OpenedFolder(of_int8).load_language_model());
  }
}

TEST_F(LoraTest, ANewHeadIsTrainedBesideTheAdapters) {
  write_file(folder_ / "train.tsv", "yes\ta red b\nno\tc d\nyes\tred\nno\te f g\n");
  config_.data.valid_files = {};
  config_.model.labels = {"no", "yes"};
  config_.lora = {.rank = 2};
  train(config_, folder_ / "run");
  const auto checkpoint = tensors_of(checkpoint_file(folder_ / "run", 20));
  EXPECT_TRUE(checkpoint.contains("model.head.weight"));
  EXPECT_FALSE(checkpoint.contains("model.embedding.weight"));
}

// The folder of an adapter says what its head reads of a text; its labels need not be those of a classifier of the hub.
TEST_F(LoraTest, AnAdapterWithANewHeadIsTheModelOfItsRun) {
  write_file(folder_ / "train.tsv", "yes\tthe cat\nno\ta dog\nyes\tthe dog\nno\ta cat sat\n");
  int runs = 0;
  const auto check = [&](const std::string& name, std::vector<std::string> keys) {
    const std::filesystem::path run = folder_ / std::to_string(++runs);
    keys.insert(keys.end(),
                {"train.initialize_from=" + (source_dir() / "tests/hub/models" / name).string(),
                 "data.train_files=" + (folder_ / "train.tsv").string(), "train.steps=4",
                 "model.architecture=encoder_classifier", "model.labels=[\"no\", \"yes\"]", "schedule.kind=constant",
                 "schedule.learning_rate=1e-2", "schedule.warmup_steps=0", "train.batch_tokens=64", "lora.rank=2"});
    train(read_run_config({}, keys), run);
    const Classifier merged = Classifier::load(run / "model"), alone = Classifier::load(run / "model" / kAdapterFolder);
    EXPECT_EQ(alone.labels(), (std::vector<std::string>{"no", "yes"}));
    const std::vector<Encoding> text = {merged.encode("the cat")};
    const std::vector<float> expected = merged.logits(text).at(0), found = alone.logits(text).at(0);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << name << " " << keys[0];
    const Json config = read_json_file(run / "model" / kAdapterFolder / kAdapterConfigFile);
    EXPECT_EQ(config.at("modules_to_save"), Json({"classifier"})) << "as PEFT wraps it, with all that is in it";
  };
  for (const char* pooling : {"mean", "first"})
    for (const char* pooler : {"true", "false"})
      check("roberta-masked", {std::string("model.pooling=") + pooling, std::string("model.pooler=") + pooler});
  check("bert-classifier", {"lora.alpha=8"});
  check("electra-classifier", {"lora.alpha=8"});
}

TEST_F(LoraTest, FrozenParametersStay) {
  config_.train.freeze = {"embedding*", "*.bias"};
  train(config_, folder_ / "run");
  const auto before = base(), after = model("run");
  for (const auto& [name, bytes] : after)
    EXPECT_EQ(bytes == before.at(name), name.starts_with("embedding") || name.ends_with(".bias")) << name;
  config_.train.freeze = {"embeding*"};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "other"); }),
              HasSubstr("train.freeze: \"embeding*\" names no parameter"));
  config_.train.freeze = {"*"};
  EXPECT_THAT(message_of<ConfigError>([&] { train(config_, folder_ / "another"); }),
              HasSubstr("no parameter to be trained"));
}

TEST_F(LoraTest, ASharedParameterIsFrozenByEachOfItsNames) {
  for (const char* name : {"embedding.weight", "projection.weight"}) {
    RunConfig config = rhyme_config(folder_);
    config.model.vocab = 20;
    config.model.share_projection = true;
    config.train.freeze = {name};
    const auto model = build_decoder_lm(config.model, 1);
    const size_t all = trained_parameters(*model).size();
    choose_trained(config, {}, *model);
    const std::vector<NamedParameter> trained = trained_parameters(*model);
    EXPECT_EQ(trained.size(), all - 1) << name;
    for (const NamedParameter& p : trained) EXPECT_NE(p.name, "embedding.weight") << name;
  }
}

TEST_F(LoraTest, RatesFallWithTheDepth) {
  config_.model.layers = 2;
  config_.train.layer_learning_rate_decay = 0.5;
  Tensor unused;
  const std::vector<NamedParameter> parameters = {{"head.weight", &unused},
                                                  {"encoder.norm.weight", &unused},
                                                  {"encoder.layers.1.residual_1.norm.weight", &unused},
                                                  {"encoder.layers.0.self_attention.w_q.lora.a", &unused},
                                                  {"embedding.weight", &unused}};
  EXPECT_EQ(learning_rate_factors(config_, parameters), (std::vector<double>{1, 0.5, 0.5, 0.25, 0.125}));
  config_.model.architecture = Architecture::encoder_decoder;
  config_.model.layers = 3;
  config_.model.decoder_layers = 1;
  const std::vector<NamedParameter> tables = {{"source_embedding.weight", &unused},
                                              {"target_embedding.weight", &unused}};
  EXPECT_EQ(learning_rate_factors(config_, tables), (std::vector<double>{0.0625, 0.25}));
  config_.train.layer_learning_rate_decay = 1;
  EXPECT_TRUE(learning_rate_factors(config_, parameters).empty());
}

TEST_F(LoraTest, WhatDoesNotGoTogetherIsSaid) {
  const auto refusal = [&] { return message_of<ConfigError>([&] { config_.validate(); }); };
  config_.lora = {.rank = 2};
  config_.train.average_checkpoints = 2;
  EXPECT_THAT(refusal(), HasSubstr("train.average_checkpoints = 2"));
  config_.train.average_checkpoints = 0;
  config_.train.initialize_from.clear();
  EXPECT_THAT(refusal(), HasSubstr("lora.rank = 2: adapters need a model in train.initialize_from"));
  config_.lora = {.base_precision = BasePrecision::int8};
  EXPECT_THAT(refusal(), HasSubstr("lora.base_precision = int8: needs adapters (lora.rank above 0)"));
}

}  // namespace
}  // namespace attune
