#include "attune/io/parameter_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>

#include "attune/base/error.h"
#include "attune/models/transformer.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/linear/precision.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(ParameterFile, NormsOfEarlierVersionsHaveAWeight) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::full({2}, 3);
  write_safetensors(folder / "f",
                    std::vector<NamedTensor>{{"model.norm.gain", x}, {"adam_m.norm.gain", x}, {"gain", x}});
  const SafetensorsReader reader = open_parameters(folder / "f");
  EXPECT_EQ(reader.names(), (Names{"adam_m.norm.weight", "gain", "model.norm.weight"}));
  EXPECT_EQ(reader.load("model.norm.weight").values<float>()[1], 3);
}

TEST(ParameterFile, ATensorThatHasTheNameKeepsIt) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::full({2}, 3);
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"a.gain", x}, {"a.weight", x}});
  SafetensorsReader reader = open_parameters(folder / "f");
  EXPECT_EQ(reader.names(), (Names{"a.gain", "a.weight"}));
  EXPECT_THROW(reader.rename("a.gain", "a.weight"), FileError);
  EXPECT_THROW(reader.rename("b", "c"), FileError);
}

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

class ParameterFileTest : public ::testing::Test {
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

  TemporaryFolder folder_{memory_folder()};
  std::filesystem::path parameters_ = folder_ / kParameterFile;
};

TEST_F(ParameterFileTest, ParametersComeBack) {
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

TEST_F(ParameterFileTest, WhatIsStoppedBetweenTwoParametersLeavesNothing) {
  struct Stopped {};
  Pair saved;
  int written = 0;
  EXPECT_THROW(save_parameters(parameters_, saved, {},
                               [&] {
                                 if (++written == 3) throw Stopped{};
                               }),
               Stopped);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  written = 0;
  save_parameters(parameters_, saved, {}, [&] { ++written; });
  EXPECT_EQ(written, 4);
}

TEST_F(ParameterFileTest, MappedParametersComeBack) {
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

TEST_F(ParameterFileTest, MatricesInBfloat16AreReadBackInFloat32) {
  const auto saved = build_transformer(config(), 3), loaded = build_transformer(config(), 4);
  round_matrices(*saved);
  save_parameters(parameters_, *saved);
  load_parameters(parameters_, *loaded);
  const auto expected = named_parameters(*saved), found = named_parameters(*loaded);
  int64_t rounded = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    rounded += expected[i].tensor->dtype() == DType::bf16 ? 1 : 0;
    EXPECT_EQ(found[i].tensor->dtype(), DType::f32) << found[i].name;
    const Tensor wide = to_float32(*expected[i].tensor);
    EXPECT_EQ(std::memcmp(found[i].tensor->raw(), wide.raw(), wide.bytes()), 0) << found[i].name;
  }
  EXPECT_GT(rounded, 0);
}

// As another program may write it: parameters that are to be adjacent are not, and one has another type.
TEST_F(ParameterFileTest, WhatCannotBeMappedIsCopied) {
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

TEST_F(ParameterFileTest, EveryParameterMustFit) {
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

}  // namespace
}  // namespace attune
