#include "attune/io/panel_parameters.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>

#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/models/transformer.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/new_parameter.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

constexpr WeightFormat kFormats[] = {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8,
                                     WeightFormat::int4};

// Every weight that may have panels, by its name in every place, and the other parameters.
class Weights final : public Visitor {
 public:
  explicit Weights(Module& module) { module.visit(*this); }
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::shared_ptr<const PanelWeight>> panels;

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    if (parameter.tensor.defined()) tensors.emplace(path, parameter.tensor);
    if (parameter.panels) panels.emplace(path, parameter.panels);
  }
};

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

class PanelParametersTest : public ::testing::Test {
 protected:
  static TransformerConfig config() {
    TransformerConfig c;
    c.source_vocab = c.target_vocab = 50;
    c.d_model = 36;  // no multiple of 16 or 32: panels and groups have padding
    c.heads = 4;
    c.layers = 2;
    c.d_ff = 40;
    c.cross_attention = MultiHeadLatent{.latent_dim = 12};
    return c;
  }
  static std::unique_ptr<Transformer> without_values(const TransformerConfig& config) {
    const NoInitialization no_values;
    return build_transformer(config);
  }
  // What a file of these tensors is refused with; the module is as it was.
  std::string refusal(const std::vector<NamedTensor>& tensors) {
    write_safetensors(path_, tensors);
    const auto model = build_transformer(config());
    const std::string message = message_of<FileError>([&] { map_panel_parameters(path_, *model, WeightFormat::int8); });
    const Weights after(*model);
    EXPECT_TRUE(after.panels.empty());
    const auto before = build_transformer(config());
    for (const NamedParameter& p : named_parameters(*before))
      EXPECT_TRUE(equal(after.tensors.at(p.name), *p.tensor)) << p.name;
    return message;
  }

  TemporaryFolder folder_{memory_folder()};
  std::filesystem::path path_ = folder_ / kParameterFile;
};

// Training validates with panels, then writes others over them.
TEST_F(PanelParametersTest, LoadingDropsThePanelsOfBefore) {
  const auto first = build_transformer(config(), 1), second = build_transformer(config(), 2);
  save_parameters(path_, *second);
  make_panels(*first, WeightFormat::float32);
  EXPECT_FALSE(Weights(*first).panels.empty());
  load_parameters(path_, *first);
  EXPECT_TRUE(Weights(*first).panels.empty());
}

TEST_F(PanelParametersTest, NumbersThatAreNotFiniteAreRefused) {
  const auto model = build_transformer(config());
  Tensor* weight = nullptr;
  for (const auto& [name, parameter] : named_parameters(*model))
    if (name.ends_with("linear_1.weight")) weight = parameter;
  ASSERT_NE(weight, nullptr);
  weight->data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4})
    EXPECT_THAT(message_of<NumericError>([&] { save_panel_parameters(path_, *model, format); }),
                AllOf(HasSubstr("linear_1.weight"), HasSubstr("number 7"), HasSubstr("nan")));
}

TEST_F(PanelParametersTest, ComeBackAsTheyWereSaved) {
  for (const WeightFormat format : kFormats) {
    for (const bool share : {false, true}) {
      TransformerConfig c = config();
      c.share_layers = c.share_embeddings = c.share_projection = share;
      const auto saved = build_transformer(c, 5);
      save_panel_parameters(path_, *saved, format);
      const auto loaded = without_values(c);
      map_panel_parameters(path_, *loaded, format);
      const Weights expected(*saved), found(*loaded);
      for (const auto& [name, tensor] : expected.tensors) {
        const auto panels = found.panels.find(name);
        if (panels == found.panels.end()) {
          EXPECT_TRUE(equal(found.tensors.at(name), tensor)) << name;
          EXPECT_TRUE(tensor.rank() == 1 || name.ends_with("_decompress.weight")) << name;
        } else {
          EXPECT_FALSE(found.tensors.contains(name)) << name;
          EXPECT_TRUE(equal(panels->second->to_matrix(), PanelWeight::lay_out(tensor, format).to_matrix())) << name;
          EXPECT_EQ(reinterpret_cast<uintptr_t>(panels->second->storage().raw()) % 64, 0u) << name;
        }
      }
      EXPECT_EQ(found.panels.at("source_embedding.weight") == found.panels.at("projection.weight"), share);
      EXPECT_EQ(found.panels.contains("encoder.layers.1.self_attention.w_q.weight"), !share);
    }
  }
}

TEST_F(PanelParametersTest, FilesThatCallPanelsPackedAreRead) {
  const auto saved = build_transformer(config(), 5);
  save_panel_parameters(path_, *saved, WeightFormat::int8);
  std::vector<NamedTensor> tensors;
  {
    const SafetensorsReader reader(path_);
    for (const std::string& name : reader.names()) {
      const size_t end = name.rfind(".panels");
      tensors.push_back({end == std::string::npos ? name : name.substr(0, end) + ".packed", reader.load(name)});
    }
  }
  write_safetensors(path_, tensors);
  const auto loaded = without_values(config());
  map_panel_parameters(path_, *loaded, WeightFormat::int8);
  const Weights expected(*saved), found(*loaded);
  EXPECT_FALSE(found.panels.empty());
  for (const auto& [name, panels] : found.panels)
    EXPECT_TRUE(
        equal(panels->to_matrix(), PanelWeight::lay_out(expected.tensors.at(name), WeightFormat::int8).to_matrix()))
        << name;
}

TEST_F(PanelParametersTest, EveryPartMustFit) {
  const auto model = build_transformer(config());
  save_panel_parameters(path_, *model, WeightFormat::int8);
  std::vector<NamedTensor> good;
  {
    const SafetensorsReader reader(path_);
    for (const std::string& name : reader.names()) good.push_back({name, reader.load(name)});
  }
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    std::vector<NamedTensor> tensors;
    for (const NamedTensor& t : good)
      if (t.name != name) tensors.push_back(t);
    if (tensor.defined()) tensors.push_back({name, tensor});
    return refusal(tensors);
  };
  const std::string weight = "projection.weight", panels = weight + ".panels", scales = weight + ".scales";
  EXPECT_THAT(with(panels, {}), HasSubstr("has no tensor \"projection.weight.panels\""));
  EXPECT_THAT(with(scales, {}), HasSubstr("has no tensor \"projection.weight.scales\""));
  EXPECT_THAT(with("projection.bias", {}), HasSubstr("has no tensor \"projection.bias\""));
  EXPECT_THAT(with(panels, Tensor::zeros({64}, {.dtype = DType::u8})),
              HasSubstr("tensor \"projection.weight.panels\" has shape [64], config.json (weights int8) says"));
  EXPECT_THAT(with(panels, Tensor::zeros({PanelWeight::storage_bytes(WeightFormat::int8, 50, 36)})),
              HasSubstr("is F32, needs U8"));
  EXPECT_THAT(with(scales, Tensor::zeros({3, 16})), HasSubstr("has shape [3, 16]"));
  EXPECT_THAT(with(scales, Tensor::zeros({4, 16}, {.dtype = DType::f64})), HasSubstr("is F64, needs F32"));
  EXPECT_THAT(with(weight, Tensor::zeros({50, 36})), HasSubstr("tensor \"projection.weight\" is unknown"));
  EXPECT_THAT(with("source_embedding.norm", Tensor::zeros({1})), HasSubstr("is unknown"));
}

TEST_F(PanelParametersTest, ConfigurationsNameTheFormat) {
  write_model_config(folder_.path(), config());
  EXPECT_EQ(read_weight_format(folder_.path()), std::nullopt);
  EXPECT_NO_THROW(refuse_panels(folder_.path(), "training"));
  for (const WeightFormat format : kFormats) {
    write_model_config(folder_.path(), config(), format);
    EXPECT_EQ(read_weight_format(folder_.path()), format);
    EXPECT_EQ(read_model_config(folder_.path()), config());
  }
  EXPECT_THAT(message_of<ConfigError>([&] { refuse_panels(folder_.path(), "training"); }),
              HasSubstr("its weights are int4 panels; training needs the model that it was made from"));
  const auto refusal = [&](const Json& quantization) {
    Json json = read_json_file(folder_ / kConfigFile);
    json["quantization_config"] = quantization;
    write_json_file(folder_ / kConfigFile, json);
    return message_of<ConfigError>([&] { read_model_config(folder_.path()); });
  };
  EXPECT_THAT(refusal({{"quant_method", "gptq"}, {"weights", "int4"}}),
              HasSubstr("quantization_config.quant_method: is \"gptq\", needs \"attune\""));
  EXPECT_THAT(refusal({{"quant_method", "attune"}, {"weights", "int3"}}),
              HasSubstr("needs one of float32, bfloat16, int8, int4"));
  EXPECT_THAT(refusal({{"quant_method", "attune"}, {"bits", 8}}), HasSubstr("unknown key \"bits\""));
  EXPECT_THAT(refusal(8), HasSubstr("needs a table of keys"));
}

TEST_F(PanelParametersTest, AbsurdSizesAreRefusedBeforeAModelIsBuilt) {
  const auto model = build_transformer(config());
  for (const WeightFormat format : kFormats) {
    save_panel_parameters(path_, *model, format);
    EXPECT_NO_THROW(check_parameter_file(folder_.path(), config(), format));
    TransformerConfig absurd = config();
    absurd.layers = 1000;
    EXPECT_THAT(message_of<FileError>([&] { check_parameter_file(folder_.path(), absurd, format); }),
                HasSubstr("layers = 1000"));
  }
}

}  // namespace
}  // namespace attune
