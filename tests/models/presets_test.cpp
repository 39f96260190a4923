#include "attune/models/presets.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attune/models/build.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

int64_t parameters_of(const char* name) {
  return count_parameters(preset_model(find_preset(name))).total();
}

TEST(Presets, AreValid) {
  for (const Preset& preset : presets()) EXPECT_NO_THROW(preset_model(preset).validate()) << preset.name;
}

TEST(Presets, SayWhatTheyAreAndWhatDiffersFromThePublication) {
  for (const Preset& preset : presets()) {
    EXPECT_FALSE(std::string_view(preset.description).empty()) << preset.name;
    EXPECT_GT(preset.differs.size(), 10u) << preset.name;
    EXPECT_NE(preset.differs.back(), '.') << preset.name << ": the page and --describe-config end the sentence";
  }
}

TEST(Presets, HaveThePublishedNumbersOfParameters) {
  // The checkpoint has 124,439,808.
  EXPECT_EQ(parameters_of("gpt2-124m"), 124439808);
  // llama2.c's stories15M has the same shape and 15,191,712.
  EXPECT_EQ(parameters_of("llama-style-small"), 15191712);
  // bert-base-uncased has 109,482,240 with its pooler and two segment embeddings, which a single text does not need;
  // the head of two labels is ours.
  EXPECT_EQ(parameters_of("bert-base"), 109482240 - 2 * 768 + 2 * (768 + 1));
  // Turc et al.'s BERT-Tiny has 4,385,920, counted likewise.
  EXPECT_EQ(parameters_of("bert-tiny"), 4385920 - 2 * 128 + 2 * (128 + 1));
  // Vaswani et al. 2017, table 3, in millions: 65 and 213.
  EXPECT_NEAR(static_cast<double>(parameters_of("transformer-base")), 65e6, 3e6);
  EXPECT_NEAR(static_cast<double>(parameters_of("transformer-big")), 213e6, 5e6);
  // Wu et al. 2021: 2.55 million.
  EXPECT_NEAR(static_cast<double>(parameters_of("transformer-tiny")), 2.55e6, 0.05e6);
  // 58,101 tokens of OPUS-MT's English-German model with their bias, and six layers of each stack.
  EXPECT_EQ(parameters_of("marian-base"), 58101 * 513 + 6 * 3152384 + 6 * 4204032);
  // nanoGPT prints 0.80M, without positions.
  EXPECT_NEAR(static_cast<double>(parameters_of("gpt-char") - 64 * 128), 0.80e6, 0.005e6);
}

TEST(Presets, SmallOnesAreBuiltWithThatManyParameters) {
  for (const char* name : {"transformer-tiny", "bert-tiny", "gpt-char"}) {
    const auto model = build_model(preset_model(find_preset(name)));
    EXPECT_EQ(parameter_count(*model), parameters_of(name)) << name;
  }
}

double deviation_of(Module& model, const std::string& name) {
  for (const NamedParameter& p : named_parameters(model)) {
    if (p.name != name) continue;
    double squares = 0;
    for (const float value : p.tensor->values<float>()) squares += static_cast<double>(value) * value;
    return std::sqrt(squares / static_cast<double>(p.tensor->numel()));
  }
  ADD_FAILURE() << name;
  return 0;
}

TEST(Presets, InitializationsOfBertAndGpt2) {
  TransformerConfig c = preset_model(find_preset("gpt-char"));
  for (const Initialization kind : {Initialization::normal, Initialization::normal_scaled}) {
    c.initialization = kind;
    const double end = kind == Initialization::normal ? 0.02 : 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers));
    const auto model = build_decoder_lm(c);
    EXPECT_NEAR(deviation_of(*model, "decoder.layers.1.self_attention.w_q.weight"), 0.02, 0.0005);
    EXPECT_NEAR(deviation_of(*model, "decoder.layers.1.self_attention.w_o.weight"), end, 0.0005);
    EXPECT_NEAR(deviation_of(*model, "decoder.layers.1.feed_forward.linear_2.weight"), end, 0.0005);
    EXPECT_NEAR(deviation_of(*model, "embedding.weight"), 0.02, 0.0005);
  }
}

// The layers of a stack count for its own weights.
TEST(Presets, Gpt2InitializationCountsTheLayersOfEachStack) {
  TransformerConfig c;
  c.source_vocab = c.target_vocab = 11;
  c.d_model = 64;
  c.layers = 2;
  c.decoder_layers = 8;
  c.d_ff = 128;
  c.initialization = Initialization::normal_scaled;
  const auto model = build_transformer(c);
  EXPECT_NEAR(deviation_of(*model, "encoder.layers.1.self_attention.w_o.weight"), 0.02 / std::sqrt(4.0), 0.0005);
  EXPECT_NEAR(deviation_of(*model, "decoder.layers.1.self_attention.w_o.weight"), 0.02 / std::sqrt(16.0), 0.0005);
  EXPECT_NEAR(deviation_of(*model, "decoder.layers.1.feed_forward.linear_2.weight"), 0.02 / std::sqrt(16.0), 0.0005);
}

// Multiplied by the root of their width, embeddings have a deviation of 1.
TEST(Presets, NormalEmbeddingsAreAsLargeAsPositionsWhateverTheirWidth) {
  TransformerConfig c = preset_model(find_preset("gpt-char"));
  c.embedding_initialization = EmbeddingInitialization::normal;
  for (const int64_t width : {0, 32}) {
    c.embedding_dim = width;
    EXPECT_NEAR(deviation_of(*build_decoder_lm(c), "embedding.weight") * std::sqrt(width > 0 ? 32.0 : 128.0), 1, 0.07);
  }
}

// The defaults of fairseq, with which the paper's code trains.
TEST(Presets, TinyTransformerHasTheDropoutAndEmbeddingsOfItsPublication) {
  const TransformerConfig c = preset_model(find_preset("transformer-tiny"));
  EXPECT_EQ(c.dropout, 0.3);
  EXPECT_EQ(c.attention_dropout, 0.0);
  EXPECT_EQ(c.activation_dropout, 0.0);
  EXPECT_EQ(c.embedding_initialization, EmbeddingInitialization::normal);
}

TEST(Presets, AnUnknownNameNamesTheNearest) {
  EXPECT_EQ(message_of<ConfigError>([] { find_preset("bert-bass"); }),
            "unknown preset \"bert-bass\", did you mean \"bert-base\"?");
}

}  // namespace
}  // namespace attune
