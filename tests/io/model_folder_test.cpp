#include "attune/io/model_folder.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "attune/base/version.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"
#include "attune/nn/new_parameter.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

struct Part final : Module {
  Parameter weight{.tensor = Tensor::full({2, 3}, 1)};
  Parameter bias{.tensor = Tensor::full({2}, 2)};
  void visit(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

struct Pair final : Module {
  Part first;
  Part second;
  Parameter tied = first.weight;  // the same numbers under a second name
  void visit(Visitor& v) override {
    v("first", first);
    v("second", second);
    v("tied", tied);
  }
};

class ModelFolderTest : public ::testing::Test {
 protected:
  TransformerConfig config() {
    TransformerConfig c;
    c.source_vocab = 100;
    c.target_vocab = 80;
    c.d_model = 16;
    c.heads = 4;
    c.layers = 2;
    c.d_ff = 32;
    c.cross_attention = MultiHeadLatent{.latent_dim = 8};
    c.norm = NormPlacement::post;
    c.norm_form = NormForm::unbiased_std;
    return c;
  }
  Json stored_config() { return read_json_file(folder_ / kConfigFile); }
  std::string refusal(const Json& json) {
    write_json_file(folder_ / kConfigFile, json);
    const std::string message = message_of<Error>([&] { read_model_config(folder_.path()); });
    EXPECT_THAT(message, HasSubstr("config.json"));
    return message;
  }

  TemporaryFolder folder_{memory_folder()};
  std::filesystem::path parameters_ = folder_ / kParameterFile;
};

TEST_F(ModelFolderTest, ParametersComeBack) {
  Pair saved;
  saved.second.bias.tensor.fill(-3);
  saved.first.weight.tensor.values<float>()[4] = 0.5f;
  save_parameters(parameters_, saved, {{"format", "attune"}});
  const SafetensorsReader reader(parameters_);
  EXPECT_FALSE(reader.contains("tied"));
  EXPECT_EQ(reader.names().size(), 4u);
  EXPECT_EQ(reader.metadata().at("format"), "attune");

  Pair loaded;
  load_parameters(parameters_, loaded);
  EXPECT_EQ(loaded.second.bias.tensor.values<float>()[1], -3.0f);
  EXPECT_EQ(loaded.first.weight.tensor.values<float>()[4], 0.5f);
  EXPECT_EQ(loaded.tied.tensor.values<float>()[4], 0.5f);
}

TEST_F(ModelFolderTest, MappedParametersComeBack) {
  for (const bool share : {false, true}) {
    TransformerConfig c = config();
    c.share_layers = share;
    c.target_vocab = c.source_vocab;
    c.share_embeddings = c.share_projection = share;
    const auto saved = build_transformer(c, 3);
    save_parameters(parameters_, *saved);
    const auto loaded = [&] {
      const NoInitialization no_values;
      return build_transformer(c, 4);
    }();
    map_parameters(parameters_, *loaded);
    const auto expected = named_parameters(*saved), found = named_parameters(*loaded);
    ASSERT_EQ(found.size(), expected.size());
    std::map<std::string, Tensor> by_name;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].name, expected[i].name);
      ASSERT_EQ(found[i].tensor->shape(), expected[i].tensor->shape()) << found[i].name;
      EXPECT_EQ(std::memcmp(found[i].tensor->raw(), expected[i].tensor->raw(), found[i].tensor->bytes()), 0)
          << found[i].name;
      EXPECT_GE(found[i].tensor->shared_by(), static_cast<int64_t>(found.size())) << "all on one file";
      by_name.emplace(found[i].name, *found[i].tensor);
    }
    const std::string attention = "encoder.layers.0.self_attention.w_";
    for (const char* part : {".weight", ".bias"})
      EXPECT_TRUE(Tensor::joined(std::array{by_name.at(attention + "q" + part), by_name.at(attention + "k" + part),
                                            by_name.at(attention + "v" + part)})
                      .defined())
          << "what is one product stays adjacent";
  }
}

// As another program may write it: parameters that are to be adjacent are not, and one has another type.
TEST_F(ModelFolderTest, WhatCannotBeMappedIsCopied) {
  const auto saved = build_transformer(config(), 3);
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& p : named_parameters(*saved)) {
    const bool narrow = p.name == "projection.bias";
    tensors.push_back({p.name, narrow ? p.tensor->to(DType::bf16) : p.tensor->clone()});
  }
  write_safetensors(parameters_, tensors);
  const auto loaded = build_transformer(config(), 4);
  map_parameters(parameters_, *loaded);
  std::map<std::string, Tensor> by_name;
  for (const NamedParameter& p : named_parameters(*loaded)) by_name.emplace(p.name, *p.tensor);
  for (const NamedParameter& p : named_parameters(*saved))
    EXPECT_EQ(std::memcmp(by_name.at(p.name).raw(), p.tensor->raw(), p.tensor->bytes()), 0) << p.name;
  EXPECT_TRUE(Tensor::joined(std::array{by_name.at("encoder.layers.0.self_attention.w_q.weight"),
                                        by_name.at("encoder.layers.0.self_attention.w_k.weight"),
                                        by_name.at("encoder.layers.0.self_attention.w_v.weight")})
                  .defined());
}

TEST_F(ModelFolderTest, EveryParameterMustFit) {
  const Tensor w = Tensor::zeros({2, 3});
  const Tensor b = Tensor::zeros({2});
  const auto refusal = [&](const std::vector<NamedTensor>& tensors) {
    write_safetensors(parameters_, tensors);
    Part part;
    const std::string message = message_of<FileError>([&] { load_parameters(parameters_, part); });
    EXPECT_EQ(part.weight.tensor.values<float>()[0], 1.0f) << "left as it was";
    return message;
  };
  EXPECT_THAT(refusal({{"weight", w}}), HasSubstr("model.safetensors: has no tensor \"bias\""));
  EXPECT_THAT(refusal({{"weight", w}, {"bias", Tensor::zeros({3})}}),
              HasSubstr("model.safetensors: tensor \"bias\" has shape [3], config.json says [2]"));
  EXPECT_THAT(refusal({{"weight", w}, {"bias", b}, {"gain", b}}), HasSubstr("tensor \"gain\" is unknown"));
  EXPECT_THAT(refusal({{"weight", w}, {"bias", b.to(DType::f64)}}),
              HasSubstr("tensor \"bias\" is float64, the model is"));
}

TEST_F(ModelFolderTest, ConfigComesBack) {
  write_model_config(folder_.path(), config());
  EXPECT_EQ(read_model_config(folder_.path()), config());
  EXPECT_EQ(stored_config().at("model_type"), "transformer");
  EXPECT_EQ(stored_config().at("attune_version"), version());
}

TEST_F(ModelFolderTest, VersionIsThatOfTheBuild) {
  const std::string build = read_file(std::filesystem::path(ATTUNE_SOURCE_DIR) / "CMakeLists.txt");
  EXPECT_THAT(build, HasSubstr(fmt::format("project(attune VERSION {} ", version())));
}

TEST_F(ModelFolderTest, ConfigNamesWhatIsWrong) {
  write_model_config(folder_.path(), config());
  const Json good = stored_config();
  const auto with = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return json;
  };
  EXPECT_THAT(refusal(with("d_modle", 3)), HasSubstr("unknown key \"d_modle\", did you mean \"d_model\"?"));
  EXPECT_THAT(refusal(with("d_model", "many")), HasSubstr("config.json.d_model: is \"many\", needs a whole number"));
  EXPECT_THAT(refusal(with("d_model", 18)), HasSubstr("d_model = 18 is not divisible by heads = 4"));
  EXPECT_THAT(refusal(with("model_type", "bert")), HasSubstr("model_type is \"bert\", needs \"transformer\""));
  EXPECT_THAT(refusal(with("cross_attention", {{"kind", "latent"}, {"latent_dim", 65}})), HasSubstr("latent_dim = 65"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("needs an object, found array"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("needs \"model_type\""));
}

TEST_F(ModelFolderTest, JsonFilesAreTakenWithCare) {
  const auto path = folder_ / "x.json";
  const auto refusal = [&](const std::string& text) {
    write_file(path, text);
    return message_of<FileError>([&] { read_json_file(path); });
  };
  EXPECT_EQ(refusal("{\"a\": 1,}"), path.string() + ": is not valid JSON at byte 9");
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON at byte 1"));
  EXPECT_THAT(refusal("{\"a\":{\"b\":1,\"b\":2}}"), HasSubstr("has key \"b\" twice"));
  EXPECT_THAT(refusal(std::string(500'000, '[')), HasSubstr("more than 64 levels"));
  EXPECT_THAT(refusal("[" + std::string(1 << 20, ' ') + "]"), HasSubstr("at most 1048576 are accepted"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("not valid JSON"));
  std::string many = "{\"\":0";
  for (int i = 0; i < 4096; ++i) many += fmt::format(",\"{}\":0", i);
  EXPECT_THAT(refusal(many + "}"), HasSubstr("more than 4096 keys"));
  write_file(path, "{\"a\":{\"b\":1},\"c\":{\"b\":1}}");
  EXPECT_EQ(read_json_file(path).at("c").at("b"), 1);
}

TEST_F(ModelFolderTest, AbsurdSizesAreRefusedBeforeAModelIsBuilt) {
  const TransformerConfig small = config();
  write_safetensors(parameters_, std::vector<NamedTensor>{{"all", Tensor::zeros({count_parameters(small).total()})}});
  EXPECT_NO_THROW(check_parameter_file(folder_.path(), small));
  const auto model = build_transformer(small);
  save_parameters(parameters_, *model);
  EXPECT_NO_THROW(check_parameter_file(folder_.path(), small)) << "what a model saves is enough for it";
  TransformerConfig absurd = small;
  absurd.d_model = 65536;
  absurd.layers = 1024;
  absurd.d_ff = 1 << 20;
  absurd.source_vocab = absurd.target_vocab = 1 << 24;
  EXPECT_GT(count_parameters(absurd).total(), int64_t{1} << 46);
  EXPECT_THAT(message_of<FileError>([&] { check_parameter_file(folder_.path(), absurd); }),
              HasSubstr("d_model = 65536"));
  write_safetensors(parameters_,
                    std::vector<NamedTensor>{{"all", Tensor::zeros({count_parameters(small).total() - 1})}});
  EXPECT_THROW(check_parameter_file(folder_.path(), small), FileError);
  absurd.layers = int64_t{1} << 60;
  EXPECT_THROW(check_parameter_file(folder_.path(), absurd), ConfigError);
}

}  // namespace
}  // namespace attune
