#include "attune/hub/adapter_folder.h"

#include <gmock/gmock.h>

#include <cmath>

#include "attune/autograd/graph.h"
#include "attune/base/file.h"
#include "attune/hub/hub_folder.h"
#include "attune/inference/export.h"
#include "attune/io/safetensors.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"
#include "tests/hub/hub_model.h"
#include "tests/support/adjacent_products.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// What PEFT wrote and computed, see make_adapters.py.
struct Fixture {
  explicit Fixture(const std::string& name)
      : folder(source_dir() / "tests/hub/adapters" / name),
        expected(read_json_file(folder / "expected.json")),
        base(source_dir() / "tests/hub/models" / expected.at("base").get<std::string>()),
        model(base.config().model.architecture == Architecture::decoder_lm
                  ? std::unique_ptr<Module>(base.load_language_model().model)
                  : std::unique_ptr<Module>(base.load_classifier().model)) {}

  Tensor logits() const {
    const NoGrad no_grad;
    const auto ids = expected.at("ids").get<std::vector<int32_t>>();
    const PackedTokens tokens = pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
    if (const auto* lm = dynamic_cast<const DecoderLm*>(model.get())) return lm->project(lm->decode(tokens));
    return dynamic_cast<const EncoderClassifier&>(*model)(tokens);
  }
  double error() const {
    const auto values = expected.at("logits").get<std::vector<float>>();
    const Tensor found = logits(), wanted = Tensor::empty(found.shape());
    wanted.assign(std::span<const float>(values));
    return relative_error(found, wanted);
  }

  std::filesystem::path folder;
  Json expected;
  OpenedFolder base;
  std::unique_ptr<Module> model;
};

class AdapterFolder : public ::testing::TestWithParam<std::string> {
 protected:
  TemporaryFolder temporary_;
};

TEST_P(AdapterFolder, GivesTheLogitsOfPeft) {
  const Fixture fixture(GetParam());
  EXPECT_GT(fixture.error(), 1e-2) << "without the adapter";
  read_adapter(fixture.folder, fixture.base, *fixture.model);
  EXPECT_LT(fixture.error(), 1e-4);
  merge_adapters(*fixture.model);
  EXPECT_LT(fixture.error(), 1e-4);
}

TEST_P(AdapterFolder, WhatIsWrittenIsReadAgain) {
  const Fixture first(GetParam()), second(GetParam());
  read_adapter(first.folder, first.base, *first.model);
  std::vector<std::string> saved;
  for (const NamedParameter& p : named_parameters(*first.model))
    if (p.name.starts_with("head.")) saved.push_back(p.name);
  write_adapter(temporary_ / "adapter", *first.model, {.base = first.base, .lora = {.rank = 3}, .saved = saved});
  read_adapter(temporary_ / "adapter", second.base, *second.model);
  EXPECT_LT(relative_error(second.logits(), first.logits()), 1e-5);
}

// A folder with an adapter stands for the model that has it.
TEST_P(AdapterFolder, IsExportedWithItsBase) {
  Fixture fixture(GetParam());
  std::filesystem::copy(fixture.folder, temporary_ / "adapter");
  Json config = read_json_file(fixture.folder / kAdapterConfigFile);
  config["base_model_name_or_path"] = fixture.base.path().string();
  write_file(temporary_ / "adapter" / kAdapterConfigFile, config.dump());
  export_model_folder(temporary_ / "adapter", temporary_ / "out");
  const HubFolder exported(temporary_ / "out");
  EXPECT_EQ(exported.hub_config().text("model_type"), fixture.base.hub()->hub_config().text("model_type"));
  fixture.model = exported.load(LoadedWeights::mapped);
  EXPECT_LT(fixture.error(), 1e-4);
}

// Of a base in bfloat16 for a device that reads tensors: the numbers are those of float32 tensors that are rounded once
// the adapter is added, and what is one product stays adjacent.
TEST_P(AdapterFolder, IsAddedToBfloat16ThatStays) {
  const Fixture fixture(GetParam());
  std::filesystem::copy(fixture.base.path(), temporary_ / "base");
  const SafetensorsReader reader(fixture.base.path() / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const std::string& name : reader.names()) {
    const Tensor tensor = reader.load(name);
    tensors.push_back({name, tensor.dtype() == DType::f32 ? to_bfloat16(tensor) : tensor});
  }
  write_safetensors(temporary_ / "base" / "model.safetensors", tensors);
  std::filesystem::copy(fixture.folder, temporary_ / "adapter");
  Json config = read_json_file(fixture.folder / kAdapterConfigFile);
  config["base_model_name_or_path"] = "../base";
  write_file(temporary_ / "adapter" / kAdapterConfigFile, config.dump());

  const OpenedFolder folder(temporary_ / "adapter");
  const auto load = [&](LoadedWeights weights) {
    return load_by_architecture(folder, weights,
                                [](auto files) { return std::unique_ptr<Module>(std::move(files.model)); });
  };
  const auto narrow = load(LoadedWeights::bfloat16_tensors), wide = load(LoadedWeights::mapped);
  round_matrices(*wide);
  for (Module* const module : {narrow.get(), wide.get()}) expect_products_adjacent(*module, folder.config().model);
  const ParameterUses uses(*narrow);
  const auto found = named_parameters(*narrow), expected = named_parameters(*wide);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Tensor& tensor = *found[i].tensor;
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(tensor.dtype(), uses.is_matrix(tensor) ? DType::bf16 : DType::f32) << found[i].name;
    EXPECT_TRUE(same_bits(to_float32(tensor), to_float32(*expected[i].tensor))) << found[i].name;
  }
}

TEST(AdapterFolderNames, ProjectionsOfOneMatrixHaveOneAdapter) {
  const TemporaryFolder temporary;
  const Fixture gpt2("gpt2");
  const LoraConfig lora{.rank = 2, .targets = {"w_q", "w_v", "w_o"}};
  add_adapters(*gpt2.model, lora, 1);
  write_adapter(temporary / "adapter", *gpt2.model, {.base = gpt2.base, .lora = lora, .saved = {}});
  const Json config = read_json_file(temporary / "adapter" / kAdapterConfigFile);
  const std::string attention = "transformer.h.0.attn.";
  EXPECT_EQ(config.at("rank_pattern").at(attention + "c_attn"), 4);
  EXPECT_EQ(config.at("alpha_pattern").at(attention + "c_attn"), 8);
  EXPECT_FALSE(config.at("rank_pattern").contains(attention + "c_proj"));
  const SafetensorsReader file(temporary / "adapter" / kAdapterFile);
  const Tensor b = file.load("base_model.model." + attention + "c_attn.lora_B.weight");
  const int64_t d = gpt2.base.config().model.d_model;
  EXPECT_EQ(b.shape(), (Shape{3 * d, 4})) << "with zeros for the keys";
}

// As PEFT 0.21 finds the key of a module: utils/other.py, get_pattern_key().
TEST(AdapterFolderNames, KeysOfAlphaPatternAreRegularExpressionsOfWholeNames) {
  const TemporaryFolder temporary;
  const Fixture fixture("starcoder2");
  std::filesystem::copy(fixture.folder, temporary / "changed");
  // lora_alpha is 4; the alphas of w_v in both layers.
  const auto alphas = [&](const Json& pattern) {
    Json config = read_json_file(fixture.folder / kAdapterConfigFile);
    config["alpha_pattern"] = pattern;
    write_file(temporary / "changed" / kAdapterConfigFile, config.dump());
    read_adapter(temporary / "changed", fixture.base, *fixture.model);
    std::vector<double> found;
    for (const AdapterSlot& slot : adapter_slots(*fixture.model))
      if (slot.name.ends_with("w_v"))
        found.push_back(slot.adapter->scale() * std::sqrt(static_cast<double>(slot.adapter->rank())));
    return found;
  };
  const auto are = [](double first, double second) {
    return ::testing::ElementsAre(::testing::DoubleNear(first, 1e-9), ::testing::DoubleNear(second, 1e-9));
  };
  EXPECT_THAT(alphas(Json::object()), are(4, 4));
  EXPECT_THAT(alphas({{"v_proj", 3}}), are(3, 3));
  EXPECT_THAT(alphas({{"[qv]_proj", 5}, {"v_proj", 3}}), are(5, 5)) << "the first one that matches";
  EXPECT_THAT(alphas({{"^model.layers.1.self_attn.v_proj", 3}}), are(4, 3));
  EXPECT_THAT(alphas({{R"(layers\.[0-9]\..*proj)", 3}}), are(3, 3));
  EXPECT_THAT(alphas({{"0.*|k_proj", 3}}), are(3, 4));
  EXPECT_THAT(alphas({{"_proj", 3}}), are(4, 4)) << "no dot in front of it";
  EXPECT_THAT(alphas({{"v_", 3}}), are(4, 4)) << "names go on";
  EXPECT_THAT(alphas({{"^v_proj", 3}}), are(4, 4));
  EXPECT_THAT(message_of<FileError>([&] {
                alphas({{"v_(proj", 3}});
              }),
              HasSubstr("alpha_pattern: \"^(.*\\.)?(v_(proj)$\" is no regular expression"));
}

// Absorbed decoding reads the matrix's elements, and would lose the adapter.
TEST(AdapterFolderNames, RequestsCannotChooseOneOfAMatrixThatIsAbsorbed) {
  const TemporaryFolder temporary;
  const OpenedFolder base(hub_models() / "deepseek-v3-yarn");
  const LanguageModelFolder files = base.load_language_model();
  for (const AdapterSlot& slot : adapter_slots(*files.model))
    if (slot.name.ends_with("layers.1.self_attention.w_k_decompress"))
      slot.adapter->set(Tensor::full({2, slot.in()}, 1), Tensor::full({slot.out(), 2}, 1), 1);
  write_adapter(temporary / "adapter", *files.model, {.base = base, .lora = {.rank = 2}, .saved = {}});
  EXPECT_THAT(
      message_of<ConfigError>([&] {
        base.load_language_model(LoadedWeights::mapped, {{"a", temporary / "adapter"}});
      }),
      HasSubstr("adapter/adapter_model.safetensors: tensor \"base_model.model.model.layers.1.self_attn.kv_b_proj."
                "lora_A.weight\" adapts"));
}

// Of PEFT's adapters with this alpha in adapter_config.json.
TEST(AdapterFolderScales, AnAlphaOfZeroAddsNothing) {
  for (const char* name : {"gpt2", "starcoder2"}) {
    const TemporaryFolder temporary;
    const Fixture fixture(name);
    const Tensor without = fixture.logits();
    std::filesystem::copy(fixture.folder, temporary / "adapter");
    Json config = read_json_file(fixture.folder / kAdapterConfigFile);
    config["lora_alpha"] = 0;
    config["alpha_pattern"] = Json::object();
    write_file(temporary / "adapter" / kAdapterConfigFile, config.dump());
    read_adapter(temporary / "adapter", fixture.base, *fixture.model);
    EXPECT_LT(relative_error(fixture.logits(), without), 1e-6) << name;
    merge_adapters(*fixture.model);
    EXPECT_LT(relative_error(fixture.logits(), without), 1e-6) << name;
  }
}

// A model of the hub, and a folder with an adapter of rank 2 and ones for its projection of this name.
struct AdapterOfOnes {
  AdapterOfOnes(const std::string& name, const std::string& projection)
      : base(hub_models() / name), model(base.load_language_model().model) {
    for (const AdapterSlot& slot : adapter_slots(*model)) {
      if (!slot.name.ends_with(projection)) continue;
      slot.adapter->set(Tensor::full({2, slot.in()}, 1), Tensor::full({slot.out(), 2}, 1), 1);
      adapter = slot.adapter;
    }
    write_adapter(folder(), *model, {.base = base, .lora = {.rank = 2}, .saved = {}});
  }
  std::filesystem::path folder() const { return temporary / "adapter"; }

  TemporaryFolder temporary;
  OpenedFolder base;
  std::unique_ptr<Module> model;
  Adapter* adapter = nullptr;
};

TEST(AdapterFolderScales, OneOfSeveralModulesMayHaveAnAlphaOfZero) {
  const AdapterOfOnes ones("deepseek-v3-yarn", "layers.0.feed_forward.linear_1");
  Json config = read_json_file(ones.folder() / kAdapterConfigFile);
  config["lora_alpha"] = 2;
  config["alpha_pattern"] = {{"gate_proj", 0}};
  write_file(ones.folder() / kAdapterConfigFile, config.dump());
  read_adapter(ones.folder(), ones.base, *ones.model);
  const Tensor added = ones.adapter->product();  // gate_proj's rows, then up_proj's
  const int64_t half = added.size(0) / 2;
  EXPECT_EQ(relative_error(added.rows(0, half), Tensor::zeros({half, added.size(1)})), 0);
  EXPECT_EQ(relative_error(added.rows(half, 2 * half), Tensor::full({half, added.size(1)}, 2)), 0);
}

TEST(AdapterFolderErrors, AnAdapterHasExactlyTheOutputsOfItsModule) {
  struct Case {
    const char *model, *projection, *module;
    int64_t outputs;
  };
  for (const auto& [model, projection, module, outputs] :
       {Case{"deepseek-v3-yarn", "layers.0.feed_forward.linear_1", "model.layers.0.mlp.gate_proj", 128},
        Case{"gpt2", "layers.0.self_attention.w_q", "transformer.h.0.attn.c_attn", 192}}) {
    const AdapterOfOnes ones(model, projection);
    const std::string b = std::string("base_model.model.") + module + ".lora_B.weight";
    const SafetensorsReader reader(ones.folder() / kAdapterFile);
    ASSERT_EQ(reader.shape(b), (Shape{outputs, 2}));
    for (const int64_t wrong : {outputs / 2, outputs + 64, 2 * outputs}) {
      std::vector<NamedTensor> tensors;
      for (const std::string& name : reader.names())
        tensors.push_back({name, name == b ? Tensor::full({wrong, 2}, 1) : reader.load(name)});
      write_safetensors(ones.folder() / kAdapterFile, tensors);
      EXPECT_EQ(message_of<FileError>([&] { read_adapter(ones.folder(), ones.base, *ones.model); }),
                (ones.folder() / kAdapterFile).string() + ": the adapter of " + module + " has " +
                    std::to_string(wrong) + " outputs, the module has " + std::to_string(outputs));
    }
  }
}

// 40,000 modules are more than a MiB of names.
TEST(AdapterFolderNames, AllExpertsOfALargeMixtureMayBeNamed) {
  const TemporaryFolder temporary;
  const Fixture fixture("starcoder2");
  std::filesystem::copy(fixture.folder, temporary / "adapter");
  Json config = read_json_file(fixture.folder / kAdapterConfigFile);
  config["base_model_name_or_path"] = fixture.base.path().string();
  config["target_modules"] = std::vector<std::string>(40000, "model.layers.10.mlp.experts.100.gate_proj");
  write_file(temporary / "adapter" / kAdapterConfigFile, config.dump());
  EXPECT_TRUE(std::filesystem::equivalent(adapter_base(temporary / "adapter"), fixture.base.path()));
  EXPECT_FALSE(head_of_adapter(temporary / "adapter"));
  read_adapter(temporary / "adapter", fixture.base, *fixture.model);
  EXPECT_LT(fixture.error(), 1e-4);
}

// The base model of the fixture without its head, and the adapter for it.
class AdapterOfANewHead : public ::testing::Test {
 protected:
  AdapterOfANewHead() {
    std::filesystem::copy(classifier_.base.path(), temporary_ / "base");
    Json config = read_json_file(temporary_ / "base" / kConfigFile);
    config["architectures"] = {"BertModel"};
    config.erase("id2label");
    config.erase("label2id");
    write_file(temporary_ / "base" / kConfigFile, config.dump());
    std::vector<NamedTensor> tensors;
    const SafetensorsReader reader(classifier_.base.path() / "model.safetensors");
    for (const std::string& name : reader.names())
      if (!name.starts_with("classifier.")) tensors.push_back({name, reader.load(name)});
    write_safetensors(temporary_ / "base" / "model.safetensors", tensors);
    write_adapter_config([](Json&) {});
    std::filesystem::copy(classifier_.folder / kAdapterFile, temporary_ / "adapter" / kAdapterFile);
  }
  void write_adapter_config(const std::function<void(Json&)>& change) {
    Json config = read_json_file(classifier_.folder / kAdapterConfigFile);
    config["base_model_name_or_path"] = "../base";
    change(config);
    std::filesystem::create_directories(temporary_ / "adapter");
    write_file(temporary_ / "adapter" / kAdapterConfigFile, config.dump());
  }

  const Fixture classifier_{"bert"};
  TemporaryFolder temporary_;
};

TEST_F(AdapterOfANewHead, MakesItsBaseAClassifier) {
  EXPECT_EQ(OpenedFolder(temporary_ / "base").config().model.architecture, Architecture::encoder);
  const ClassifierFolder found = OpenedFolder(temporary_ / "adapter").load_classifier();
  read_adapter(classifier_.folder, classifier_.base, *classifier_.model);
  const auto ids = classifier_.expected.at("ids").get<std::vector<int32_t>>();
  const PackedTokens tokens = pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
  const NoGrad no_grad;
  EXPECT_LT(relative_error((*found.model)(tokens), classifier_.logits()), 1e-5);
  const std::vector<std::string>& labels = found.model->config().labels;
  ASSERT_EQ(labels.size(), classifier_.base.config().model.labels.size());
  EXPECT_EQ(labels.front(), "LABEL_0");
}

TEST_F(AdapterOfANewHead, WhatIsWrittenHasTheNamesOfTheLabels) {
  const OpenedFolder base(temporary_ / "base"), adapted(temporary_ / "adapter");
  const ClassifierFolder found = adapted.load_classifier();
  std::vector<std::string> labels;
  for (size_t i = 0; i < found.model->config().labels.size(); ++i) labels.push_back("topic " + std::to_string(i));
  add_adapters(*found.model, {.rank = 2}, 1);
  write_adapter(temporary_ / "written", *found.model,
                {.base = base, .lora = {.rank = 2}, .saved = {"head.weight", "head.bias"}, .labels = labels});
  EXPECT_EQ(OpenedFolder(temporary_ / "written").load_classifier().model->config().labels, labels);
}

TEST_F(AdapterOfANewHead, WhatItStoresTakesThePlaceOfTheBasesOwn) {
  const SafetensorsReader reader(classifier_.folder / kAdapterFile);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : reader.names()) tensors.push_back({name, reader.load(name)});
  const SafetensorsReader base(temporary_ / "base" / "model.safetensors");
  const Tensor pooler = Tensor::zeros(base.shape("bert.pooler.dense.weight"));
  tensors.push_back({"base_model.model.bert.pooler.dense.weight", pooler});
  write_safetensors(temporary_ / "adapter" / kAdapterFile, tensors);
  const ClassifierFolder found = OpenedFolder(temporary_ / "adapter").load_classifier();
  int seen = 0;
  for (const NamedParameter& p : named_parameters(*found.model)) {
    if (!p.name.starts_with("pooler.") || p.tensor->rank() != 2) continue;
    for (const float x : p.tensor->values<float>()) EXPECT_EQ(x, 0);
    ++seen;
  }
  EXPECT_EQ(seen, 1);
}

TEST_F(AdapterOfANewHead, GivesNumbersWhereItWasWrittenForThem) {
  const ClassifierFolder found = OpenedFolder(temporary_ / "adapter").load_classifier();
  EXPECT_FALSE(found.model->config().is_regression());
  const OpenedFolder base(temporary_ / "base");
  add_adapters(*found.model, {.rank = 2}, 1);
  write_adapter(temporary_ / "written", *found.model,
                {.base = base, .lora = {.rank = 2}, .saved = {"head.weight", "head.bias"}, .is_regression = true});
  EXPECT_TRUE(OpenedFolder(temporary_ / "written").load_classifier().model->config().is_regression());
}

TEST_F(AdapterOfANewHead, WhatDoesNotFitIsSaid) {
  const auto refusal = [&] {
    return message_of<Error>([&] { OpenedFolder(temporary_ / "adapter").load_classifier(); });
  };
  const SafetensorsReader reader(classifier_.folder / kAdapterFile);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : reader.names()) tensors.push_back({name, reader.load(name)});
  write_safetensors(temporary_ / "adapter" / kAdapterFile, tensors, {{"labels", "[\"one\"]"}});
  EXPECT_THAT(refusal(), HasSubstr("names for 1 labels"));
  write_safetensors(temporary_ / "adapter" / kAdapterFile, tensors, {{"labels", "{"}});
  EXPECT_THAT(refusal(), HasSubstr("metadata"));
  std::erase_if(tensors, [](const NamedTensor& t) { return t.name.find("classifier.weight") != std::string::npos; });
  write_safetensors(temporary_ / "adapter" / kAdapterFile, tensors);
  EXPECT_THAT(refusal(), HasSubstr("has no tensor \"classifier.weight\""));
}

INSTANTIATE_TEST_SUITE_P(Peft, AdapterFolder, ::testing::Values("gpt2", "starcoder2", "bert"));

// PEFT writes no template beside an adapter.
TEST(AdapterFolderTemplate, IsThatOfTheModelWhereTheAdapterHasNone) {
  const TemporaryFolder folder;
  for (const char* name : {"base", "adapter"}) std::filesystem::create_directory(folder / name);
  write_file(folder / "base" / "config.json", "{}");
  write_file(folder / "base" / "chat_template.jinja", "of the base");
  write_file(folder / "adapter" / "adapter_config.json", R"({"base_model_name_or_path": "../base"})");
  EXPECT_EQ(open_chat_template(folder / "adapter")->render({{"user", "a"}}), "of the base");
  write_file(folder / "adapter" / "chat_template.jinja", "of the adapter");
  EXPECT_EQ(open_chat_template(folder / "adapter")->render({{"user", "a"}}), "of the adapter");
}

TEST(AdapterFolderBase, IsFoundFromTheAdapterOrFromTheCurrentDirectory) {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = std::filesystem::canonical(temporary.path());
  for (const char* name : {"base", "adapter"}) std::filesystem::create_directory(folder / name);
  write_file(folder / "base" / "config.json", "{}");
  const auto named = [&](const std::filesystem::path& base) {
    write_file(folder / "adapter" / "adapter_config.json", Json{{"base_model_name_or_path", base.string()}}.dump());
  };
  for (const auto& base :
       {std::filesystem::path("../base"), folder / "base", std::filesystem::relative(folder / "base")}) {
    named(base);
    EXPECT_TRUE(std::filesystem::equivalent(adapter_base(folder / "adapter"), folder / "base")) << base;
  }
  named("base");
  EXPECT_THAT(message_of<ConfigError>([&] { adapter_base(folder / "adapter"); }),
              HasSubstr("base_model_name_or_path = \"base\": is no folder of a model here"));
}

TEST(AdapterFolderErrors, SayWhatDoesNotFit) {
  const TemporaryFolder temporary;
  const Fixture fixture("starcoder2");
  std::filesystem::create_directories(temporary / "changed");
  const auto refusal = [&](const std::function<void(Json&)>& change) {
    std::filesystem::copy(fixture.folder, temporary / "changed",
                          std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
    Json config = read_json_file(fixture.folder / kAdapterConfigFile);
    change(config);
    write_file(temporary / "changed" / kAdapterConfigFile, config.dump());
    return message_of<ConfigError>([&] { read_adapter(temporary / "changed", fixture.base, *fixture.model); });
  };
  EXPECT_THAT(refusal([](Json& c) { c["peft_type"] = "PREFIX_TUNING"; }), HasSubstr("peft_type = \"PREFIX_TUNING\""));
  EXPECT_THAT(refusal([](Json& c) { c["use_dora"] = true; }), HasSubstr("use_dora = true"));
  EXPECT_THAT(refusal([](Json& c) { c["init_lora_weights"] = "pissa_niter_4"; }),
              HasSubstr("init_lora_weights = \"pissa_niter_4\": changes the base model"));
  EXPECT_THAT(refusal([](Json& c) { c.erase("lora_alpha"); }), HasSubstr("lora_alpha"));
  EXPECT_THAT(refusal([](Json& c) { c["lora_dropout"] = 1; }),
              HasSubstr("adapter_config.json: lora_dropout = 1: needs a number from 0 to below 1"));
  EXPECT_THAT(refusal([](Json& c) { c["task_type"] = "SEQ_CLS"; }),
              HasSubstr("task_type = \"SEQ_CLS\": needs a base model that has a head for labels"));
  const Fixture other("bert");
  EXPECT_THAT(message_of<FileError>([&] { read_adapter(fixture.folder, other.base, *other.model); }),
              HasSubstr("is for no projection of the model"));
}

}  // namespace
}  // namespace attune
