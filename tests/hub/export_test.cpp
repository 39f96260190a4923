// Models that are written as folders of the hub: what was read from one has the same tensors, and what was made here
// computes the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/export.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/models/presets.h"
#include "attune/ops/linear/precision.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/hub/exported_model.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::vector<int32_t>> kTexts = {{5, 9, 33, 7, 2, 41}, {17, 3}};

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.host_bytes();
  return {bytes.begin(), bytes.end()};
}

// The same names, types, shapes and bits.
void expect_same_tensors(const fs::path& found, const fs::path& expected) {
  const TensorSource ours(found), theirs(expected);
  ASSERT_EQ(ours.names(), theirs.names());
  for (const std::string& name : theirs.names()) {
    const Tensor a = ours.read(name), b = theirs.read(name);
    EXPECT_EQ(a.shape(), b.shape()) << name;
    EXPECT_EQ(a.dtype(), b.dtype()) << name;
    EXPECT_EQ(bytes_of(a), bytes_of(b)) << name;
  }
}

class ExportedHubModels : public testing::TestWithParam<std::string> {
 protected:
  fs::path from() const { return hub_models() / GetParam(); }
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Folder, ExportedHubModels, testing::ValuesIn(hub_model_names()), hub_test_name);

TEST_P(ExportedHubModels, AFolderOfTheHubKeepsItsTensorsToTheBit) {
  const fs::path out = folder_ / "out";
  const ExportedModel done = export_model_folder(from(), out);
  expect_same_tensors(out, from());
  EXPECT_EQ(read_json_file(out / "config.json"), read_json_file(from() / "config.json"));
  EXPECT_EQ(done.family, read_json_file(from() / "config.json").at("model_type"));
  for (const char* name : {"tokenizer.json", "vocab.txt", "generation_config.json"})
    EXPECT_EQ(fs::exists(out / name), fs::exists(from() / name)) << name;
}

// By way of the model: the table of names in both directions.
TEST_P(ExportedHubModels, TheModelItselfGivesTheTensorsThatItWasReadFrom) {
  const HubFolder hub(from());
  const std::unique_ptr<Module> model = hub.load(LoadedWeights::mapped);
  const HubForm form =
      form_of(*model, hub.config(), hub.hub_config().text("model_type"), special_ids_of(hub.hub_config(), {.pad = 1}));
  write_hub_model(folder_.path(), *model, hub.config(), form, {});

  const TensorSource ours(folder_.path()), theirs(from());
  for (const std::string& name : ours.names()) {
    ASSERT_TRUE(theirs.contains(name)) << name;
    ASSERT_EQ(ours.shape(name), theirs.shape(name)) << name;
    const std::vector<float> found = host_values<float>(ours.read(name, Bfloat16::widened)),
                             expected = host_values<float>(theirs.read(name, Bfloat16::widened));
    const size_t padding =
        name.find("embed_positions") != std::string::npos || (name.find("position_embeddings") != std::string::npos &&
                                                              GetParam().find("roberta") != std::string::npos)
            ? static_cast<size_t>(2 * ours.shape(name)[1])
            : 0;  // rows that no position reads
    for (size_t i = padding; i < found.size(); ++i) {
      if (GetParam().starts_with("gemma"))  // norms are stored without the 1 that is added to them
        ASSERT_NEAR(found[i], expected[i], 1e-7) << name;
      else
        ASSERT_EQ(found[i], expected[i]) << name << " at " << i;
    }
  }
  const HubFolder again(folder_.path());
  EXPECT_EQ(again.hub_config().text("model_type"), hub.hub_config().text("model_type"));
  TransformerConfig expected = hub.config();
  const auto* const experts = std::get_if<Experts>(&expected.feed_forward);
  if (experts != nullptr && experts->dense_layers.empty() && experts->d_ff > 0)
    expected.d_ff = experts->d_ff;  // no layer is as wide as d_ff
  EXPECT_EQ(again.config(), expected);
  EXPECT_EQ(model_outputs(*again.load(LoadedWeights::mapped), packed(kTexts)), model_outputs(*model, packed(kTexts)));
}

TEST_P(ExportedHubModels, Bfloat16IsRounded) {
  const fs::path out = folder_ / "out";
  export_model_folder(from(), out, {.precision = ProductPrecision::bfloat16});
  const TensorSource ours(out), theirs(from());
  for (const std::string& name : theirs.names()) {
    if (theirs.dtype(name) != DType::f32) continue;
    EXPECT_EQ(ours.dtype(name), DType::bf16) << name;
    EXPECT_EQ(bytes_of(ours.read(name)), bytes_of(to_bfloat16(theirs.read(name)))) << name;
  }
  const Json config = read_json_file(out / "config.json");
  EXPECT_EQ(config.at(config.contains("dtype") ? "dtype" : "torch_dtype"), "bfloat16");
}

TEST(Export, LargeModelsAreWrittenInShards) {
  const fs::path from = source_dir() / "tests/hub/models/gpt2";
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  export_model_folder(from, out, {.shard_bytes = 40000});
  EXPECT_FALSE(fs::exists(out / "model.safetensors"));
  EXPECT_TRUE(fs::exists(out / "model-00001-of-00004.safetensors") || fs::exists(out / "model.safetensors.index.json"));
  expect_same_tensors(out, from);
  const Json index = read_json_file(out / "model.safetensors.index.json");
  EXPECT_EQ(index.at("weight_map").size(), TensorSource(from).names().size());
}

TEST(Export, Float64IsConvertedWhereATypeIsAskedFor) {
  const Tensor wide = normal({3, 5}, {.seed = 1}), narrow = wide.to(DType::f32);
  const std::vector<HubTensor> tensors = {
      {.name = "w", .shape = wide.shape(), .dtype = DType::f64, .read = [&] { return wide; }}};
  const TemporaryFolder folder;
  const auto written_as = [&](std::optional<DType> dtype, const Tensor& expected) {
    const WrittenTensors written = write_hub_tensors(folder.path(), tensors, {.dtype = dtype});
    EXPECT_EQ(written.bytes, static_cast<int64_t>(expected.bytes()));
    EXPECT_TRUE(same_bits(TensorSource(folder.path()).read("w"), expected)) << name_of(expected.dtype());
    return written.dtype;
  };
  EXPECT_EQ(written_as(DType::bf16, to_bfloat16(narrow)), DType::bf16);
  EXPECT_EQ(written_as(DType::f32, narrow), DType::f32);
  written_as({}, wide);
}

TEST(Export, IsWrittenWholeOrNotAtAll) {
  const fs::path from = source_dir() / "tests/hub/models/gpt2";
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  struct Stopped {};
  int tensors = 0;
  const ExportOptions stopped{.before_each = [&] {
    if (++tensors == 5) throw Stopped{};
  }};
  EXPECT_THROW(export_model_folder(from, out, stopped), Stopped);
  EXPECT_TRUE(fs::is_empty(folder.path()));

  fs::create_directory(out);
  export_model_folder(from, out);
  EXPECT_TRUE(fs::exists(out / "model.safetensors"));
  EXPECT_THAT(message_of<FileError>([&] { export_model_folder(from, out); }), HasSubstr("is there already"));
}

// A folder of the hub as a model of another family with the same arithmetic.
TEST(Export, AFamilyCanBeChosen) {
  const fs::path from = source_dir() / "tests/hub/models/phi3";
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  EXPECT_EQ(export_model_folder(from, out, {.family = "mistral"}).class_name, "MistralForCausalLM");
  EXPECT_EQ(model_outputs(*HubFolder(out).load(LoadedWeights::mapped), packed(kTexts)),
            model_outputs(*HubFolder(from).load(LoadedWeights::mapped), packed(kTexts)));
  EXPECT_TRUE(TensorSource(out).contains("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_THAT(message_of<ConfigError>([&] { export_model_folder(from, folder / "2", {.family = "jamba"}); }),
              AllOf(HasSubstr("jamba"), HasSubstr("mistral")));
  EXPECT_THAT(message_of<ConfigError>([&] { export_model_folder(from, folder / "2", {.family = "gpt2"}); }),
              HasSubstr("positions"));
  EXPECT_FALSE(fs::exists(folder / "2"));
}

struct PresetForm {
  const char* preset;
  const char* class_name;
};

std::string preset_test_name(const testing::TestParamInfo<PresetForm>& info) {
  std::string name = info.param.preset;
  std::ranges::replace(name, '-', '_');
  return name;
}

class ExportedPresets : public testing::TestWithParam<PresetForm> {};

INSTANTIATE_TEST_SUITE_P(Name, ExportedPresets,
                         testing::Values(PresetForm{"llama-style-small", "LlamaForCausalLM"},
                                         PresetForm{"gpt2-124m", "GPT2LMHeadModel"},
                                         PresetForm{"gpt-char", "OPTForCausalLM"},
                                         PresetForm{"bert-tiny", "BertForSequenceClassification"},
                                         PresetForm{"bert-base", "BertForSequenceClassification"},
                                         PresetForm{"marian-base", "MarianMTModel"}),
                         preset_test_name);

// With fewer layers and tokens, which change no form.
TEST_P(ExportedPresets, ComputeTheSame) {
  TransformerConfig c = preset_model(find_preset(GetParam().preset));
  c.layers = 2;
  c.vocab = c.source_vocab = c.target_vocab = 50;
  if (c.d_model > 300) {
    c.d_model = 96;
    c.d_ff = 192;
  }
  const std::unique_ptr<Module> model = model_to_export(c, 3);
  const TemporaryFolder folder;
  const HubForm form = form_of(*model, c);
  EXPECT_EQ(form.hub_class.name, GetParam().class_name);
  write_hub_model(folder.path(), *model, c, form, {});
  EXPECT_LT(relative_difference(model_outputs(*HubFolder(folder.path()).load(LoadedWeights::mapped), packed(kTexts)),
                                model_outputs(*model, packed(kTexts))),
            2e-6);
}

TEST(Export, WhatHasNoEquivalentIsRefusedByName) {
  TransformerConfig llama = preset_model(find_preset("llama-style-small"));
  llama.vocab = 50;
  const auto refusal = [](const TransformerConfig& c, const std::string& family = "") {
    const std::unique_ptr<Module> model = build_model(c, 1);
    return message_of<ConfigError>([&] { form_of(*model, c, family); });
  };
  TransformerConfig c = llama;
  c.positions = AlibiPositions{};
  EXPECT_THAT(refusal(c), HasSubstr("positions"));
  c = llama;
  std::get<MultiHead>(c.attention).pattern = StridedAttention{};
  EXPECT_THAT(refusal(c), AllOf(HasSubstr("attention.pattern"), HasSubstr("strided")));
  c = llama;
  c.norm_form = NormForm::unbiased_std;
  EXPECT_THAT(refusal(c), AllOf(HasSubstr("norm_form"), HasSubstr("unbiased_std")));
  c = llama;
  c.projection_bias = true;  // no class of transformers has one
  EXPECT_THAT(refusal(c), HasSubstr("projection_bias"));
  c = llama;
  std::get<MultiHead>(c.attention).soft_cap = 30;
  EXPECT_THAT(refusal(c), HasSubstr("attention.soft_cap"));
  EXPECT_THAT(refusal(llama, "qwen3"), HasSubstr("attention.head_norm"));
  c = llama;  // LLaMA rotates whole heads in transformers, Phi-3 a share
  std::get<RotaryOptions>(c.positions).dimensions = 8;
  EXPECT_THAT(refusal(c, "llama"), HasSubstr("positions.dimensions"));
  EXPECT_EQ(form_of(*build_model(c, 1), c, "phi3").config.at("rope_parameters").at("partial_rotary_factor"),
            8.0 / static_cast<double>(c.head_dim()));
  EXPECT_THAT(refusal(llama, "bert"), HasSubstr("decoder_lm"));
  EXPECT_THAT(refusal(preset_model(find_preset("transformer-tiny"))), HasSubstr("positions.order"));
  c = HubFolder(source_dir() / "tests/hub/models/m2m100").config();
  c.projection_bias = true;  // BART and Marian have one, M2M100 has not
  EXPECT_THAT(refusal(c, "m2m_100"), HasSubstr("projection_bias"));
}

// A folder of Attune's own, with all that belongs to it.
TEST(Export, AFolderOfAttuneHasItsTokenizerAndItsSettings) {
  TransformerConfig c = preset_model(find_preset("llama-style-small"));
  const WhitespaceTokenizer tokenizer({"a", "b", "cat", "dog"});
  c.vocab = tokenizer.vocab_size();
  c.layers = 1;
  const std::unique_ptr<Module> model = model_to_export(c, 5);
  const TemporaryFolder folder;
  save_model_folder(folder / "own", dynamic_cast<DecoderLm&>(*model), tokenizer,
                    {.top_k = 7, .slide = true, .suppressed_phrases = {{4, 5}, {3}, {6}}}, TextUnit::line);
  write_file(folder / "own" / "chat_template.jinja", "{{ bos_token }}chat");
  const std::string with_tools = "additional_chat_templates/tool_use.jinja";
  fs::create_directory((folder / "own" / with_tools).parent_path());
  write_file(folder / "own" / with_tools, "tools");
  const ExportedModel done = export_model_folder(folder / "own", folder / "out");
  EXPECT_EQ(done.left_out, (std::vector<std::string>{"generation: slide has no equivalent"}));
  export_model_folder(folder / "out", folder / "copy");  // of a folder of the hub
  for (const char* name : {"out", "copy"}) {
    EXPECT_EQ(read_file(folder / name / "chat_template.jinja"), "{{ bos_token }}chat") << name;
    EXPECT_EQ(read_file(folder / name / with_tools), "tools") << name;
  }
  const LanguageModelFolder read = open_language_model_folder(folder / "out");
  EXPECT_EQ(read.tokenizer->encode_for_model("a cat").ids, (std::vector<int32_t>{2, 4, 6}));
  EXPECT_EQ(read.sampling.top_k, 7);
  EXPECT_EQ(read.sampling.eos_tokens, (std::vector<int64_t>{3}));
  EXPECT_EQ(read.sampling.suppressed_tokens, (std::vector<int64_t>{3, 6, 0, 1, 2})) << "an end too";
  EXPECT_EQ(read.sampling.suppressed_phrases, (std::vector<std::vector<int64_t>>{{4, 5}}));
}

TEST(Export, AFolderOfTheHubKeepsTheModulesOfItsEmbeddings) {
  const TemporaryFolder folder;
  fs::copy(hub_models() / "bert-classifier", folder / "own");
  fs::create_directories(folder / "own" / "layers" / "pool");
  write_file(folder / "own" / "modules.json",
             R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                 {"type": "sentence_transformers.models.Pooling", "path": "layers/pool"}])");
  write_file(folder / "own" / "layers" / "pool" / "config.json", R"({"pooling_mode": "max"})");
  export_model_folder(folder / "own", folder / "out");
  for (const char* name : {"config.json", "modules.json", "layers/pool/config.json"})
    EXPECT_EQ(read_json_file(folder / "out" / name), read_json_file(folder / "own" / name)) << name;
}

}  // namespace
}  // namespace attune
