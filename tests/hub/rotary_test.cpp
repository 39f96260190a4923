// Rotary positions as config.json has them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/hub/families.h"
#include "attune/hub/translate.h"
#include "tests/hub/hub_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using testing::HasSubstr;

// A model of the family that config.json names, of 2 layers and 2 heads, with these fields too.
TransformerConfig small_rotary_model(const char* fields, Architecture architecture = Architecture::decoder_lm) {
  Json json = {{"vocab_size", 64},         {"hidden_size", 64},
               {"num_attention_heads", 2}, {"head_dim", 8},
               {"num_hidden_layers", 2},   {"num_key_value_heads", 2},
               {"intermediate_size", 8},   {"max_position_embeddings", 8192}};
  json.update(Json::parse(fields));
  const HubConfig config(json, "config.json");
  const HubTensors tensors(source_dir() / "tests/hub/models/gpt2", "");
  return family_of(config).translate(
      {.config = config, .tensors = tensors, .architecture = architecture, .class_name = ""});
}

TEST(HubRotary, RotaryPositionsInTheNotationOfTransformers4) {
  const RotaryOptions linear =
      rotary_of(config_of(R"({"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 2}})"), {.head_dim = 8});
  EXPECT_EQ(linear, (RotaryOptions{.base = 5e5, .scaling = RotaryScaling::linear, .factor = 2}));
  EXPECT_EQ(rotary_of(config_of(R"({"rope_theta": 5e5, "rope_scaling": null})"), {}), RotaryOptions{.base = 5e5});
  EXPECT_EQ(rotary_of(config_of(R"({})"), {}), RotaryOptions{});
}

TEST(HubRotary, RotaryPositionsInTheNotationOfTransformers5) {
  const RotaryOptions llama3 = rotary_of(
      config_of(R"({"max_position_embeddings": 512, "rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5,
          "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}})"),
      {});
  EXPECT_EQ(llama3, (RotaryOptions{.base = 5e5,
                                   .scaling = RotaryScaling::llama3,
                                   .factor = 8,
                                   .original_length = 64,
                                   .beta_fast = 4,
                                   .beta_slow = 1}));
  const HubConfig nested = config_of(R"({"rope_parameters": {
      "full_attention": {"rope_theta": 1e6, "rope_type": "default"},
      "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}})");
  EXPECT_EQ(rotary_of(nested, {.layer_type = "full_attention"}).base, 1e6);
  EXPECT_EQ(rotary_of(nested, {.layer_type = "sliding_attention"}).base, 1e4);
}

TEST(HubRotary, APartOfEachHeadIsRotated) {
  const HubConfig hub = config_of(R"({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}})");
  EXPECT_EQ(rotary_of(hub, {.head_dim = 32, .partial = true}).dimensions, 8);
  EXPECT_EQ(rotary_of(config_of("{}"), {.head_dim = 32, .partial = true, .partial_factor = 0.5}).dimensions, 16);
  EXPECT_EQ(rotary_of(hub, {.head_dim = 32}), RotaryOptions{}) << "transformers asks in a few families alone";
}

TEST(HubRotary, YarnHasTheRampAndTheMagnitudeOfTransformers) {
  const RotaryOptions yarn =
      rotary_of(config_of(R"({"max_position_embeddings": 256, "rope_parameters": {"rope_type": "yarn", "factor": 4,
          "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 0.8}})"),
                {});
  EXPECT_EQ(yarn.ramp, RotaryRamp::pairs);
  EXPECT_NEAR(yarn.magnitude, (0.1 * std::log(4) + 1) / (0.08 * std::log(4) + 1), 1e-12);
  // floor(8 ln(64 / (32 * 2 pi)) / (2 ln 10000)) is below 0, ceil(8 ln(64 / (2 pi)) / (2 ln 10000)) is 2: the ramp has
  // the middle pair 1.
  const RotaryFrequencies f = rotary_frequencies(yarn, 8);
  EXPECT_DOUBLE_EQ(f.frequencies[0], 1);
  EXPECT_DOUBLE_EQ(f.frequencies[1], (0.5 + 0.5 / 4) * 0.1);
  EXPECT_DOUBLE_EQ(f.frequencies[2], 0.01 / 4);
}

TEST(HubRotary, AnOddNumberOfRotatedDimensionsIsNamedByTheFieldThatHasIt) {
  const RotaryFields fields{.head_dim = 20, .partial = true, .partial_factor = 0.25, .partial_field = "rotary_pct"};
  EXPECT_THAT(
      message_of<ConfigError>([&] { rotary_of(config_of(R"({"rotary_pct": 0.25})"), fields); }),
      HasSubstr("rotary_pct = 0.25: rotates 5 of 20 dimensions of a head, which are turned in pairs: needs an even "
                "number"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { rotary_of(config_of(R"({"rope_parameters": {"partial_rotary_factor": 0.25}})"), fields); }),
              HasSubstr("partial_rotary_factor = 0.25: rotates 5 of 20 dimensions"));
  EXPECT_EQ(rotary_of(config_of(R"({"rotary_pct": 0.5})"), fields).dimensions, 10);
}

TEST(HubRotary, YarnWithoutRoundingAndWithoutFactor) {
  const RotaryOptions yarn =
      rotary_of(config_of(R"({"max_position_embeddings": 256, "rope_parameters": {"rope_type": "yarn",
          "original_max_position_embeddings": 64, "truncate": false}})"),
                {});
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.ramp, RotaryRamp::exact_pairs);
  // 8 ln(64 / (2 pi)) / (2 ln 10000) = 1.008: the ramp has pair 1, with 0.008 of its own frequency.
  const double last = 8 * std::log(64 / (2 * M_PI)) / (2 * std::log(10000));
  const double kept = 1 - 1 / last;
  EXPECT_DOUBLE_EQ(rotary_frequencies(yarn, 8).frequencies[1], (kept + (1 - kept) / 4) * 0.1);
}

constexpr const char* kLongrope = R"({"max_position_embeddings": 256, "original_max_position_embeddings": 64,
    "rope_scaling": {"type": "su", "short_factor": [1, 2, 3, 4], "long_factor": [5, 6, 7, 8]}})";

TEST(HubRotary, LongropeHasItsFactorsOfShortTextsAndReadsNoOthers) {
  const RotaryOptions longrope = rotary_of(config_of(kLongrope), {});
  EXPECT_EQ(longrope.pair_factors, (std::vector<double>{1, 2, 3, 4}));
  const RotaryFrequencies f = rotary_frequencies(longrope, 8);
  EXPECT_DOUBLE_EQ(f.magnitude, std::sqrt(1 + std::log(4) / std::log(64)));
  EXPECT_DOUBLE_EQ(f.frequencies[3], 0.001 / 4);
  TransformerConfig c;
  set_rotary(c, config_of(kLongrope), {});
  EXPECT_EQ(c.context_length, 64);
}

TEST(HubRotary, LongropeWithAnotherNumberOfFactorsIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { rotary_frequencies(rotary_of(config_of(kLongrope), {}), 16); }),
              HasSubstr("pair_factors: has 4 numbers, 16 dimensions have 8 pairs"));
}

TEST(HubRotary, AnUnknownScalingIsRefused) {
  EXPECT_THAT(message_of<ConfigError>(
                  [] { rotary_of(config_of(R"({"rope_scaling": {"type": "stretched", "factor": 4}})"), {}); }),
              HasSubstr("config.json.rope_scaling: type = \"stretched\": is not supported"));
}

TEST(HubRotary, OfBothFieldsTheOlderOneGoesFirst) {
  const HubConfig both = config_of(R"({"max_position_embeddings": 64,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
      "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}})");
  EXPECT_EQ(rotary_of(both, {}).scaling, RotaryScaling::yarn);
  EXPECT_EQ(rotary_of(both, {}).base, 10000);
  const HubConfig by_layer = config_of(R"({"rope_scaling": {"rope_type": "linear", "factor": 4},
      "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e6}}})");
  EXPECT_EQ(rotary_of(by_layer, {.layer_type = "full_attention"}),
            (RotaryOptions{.base = 1e6, .scaling = RotaryScaling::linear, .factor = 4}))
      << "its fields replace those of the layers";
  EXPECT_EQ(rotary_of(config_of(R"({"rope_scaling": {}, "rope_parameters": {"rope_theta": 7}})"), {}).base, 7);
}

TEST(HubRotary, LongropeEndsTheContextOfGemmaToo) {
  EXPECT_EQ(small_rotary_model(R"({"model_type": "gemma2", "original_max_position_embeddings": 64,
      "rope_scaling": {"rope_type": "longrope", "short_factor": [1, 2, 3, 4]}})")
                .context_length,
            64);
  for (const char* layers : {"full_attention", "sliding_attention"}) {
    const Json longrope = {
        {"rope_type", "longrope"}, {"short_factor", {1, 2, 3, 4}}, {"original_max_position_embeddings", 64}};
    const Json fields = {{"model_type", "gemma3_text"}, {"rope_parameters", {{layers, longrope}}}};
    EXPECT_EQ(small_rotary_model(fields.dump().c_str()).context_length, 64) << layers;
  }
}

TEST(HubRotary, ModernBertHasNoAnglesThatDependOnTheLength) {
  for (const char* type : {"dynamic", "longrope"}) {
    const Json fields = {{"model_type", "modernbert"}, {"rope_scaling", {{"rope_type", type}, {"factor", 2}}}};
    EXPECT_THAT(message_of<ConfigError>([&] { small_rotary_model(fields.dump().c_str(), Architecture::encoder); }),
                HasSubstr(std::string("rope_type = \"") + type + "\": is not supported in this family"));
  }
}

TEST(HubRotary, GptNeoxHasNamesOfItsOwn) {
  const TransformerConfig c = small_rotary_model(R"({"model_type": "gpt_neox", "rope_theta": 5, "rotary_emb_base": 7,
      "partial_rotary_factor": 0.5, "rotary_pct": 0.25})");
  EXPECT_EQ(std::get<RotaryOptions>(c.positions), (RotaryOptions{.base = 7, .dimensions = 2}));
}

TEST(HubRotary, TheBaseOfLocalLayersIsNeverThatOfGlobalOnes) {
  Json fields = Json::parse(R"({"model_type": "gemma3_text", "rope_theta": 1e6, "rope_local_base_freq": 20000,
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8},
                          "sliding_attention": {"rope_type": "default"}}})");
  const auto model = [&] { return small_rotary_model(fields.dump().c_str()); };
  EXPECT_EQ(std::get<RotaryOptions>(model().positions),
            (RotaryOptions{.base = 1e6, .scaling = RotaryScaling::linear, .factor = 8}));
  EXPECT_EQ(std::get<RotaryOptions>(model().local_positions), RotaryOptions{.base = 20000});
  fields.erase("rope_local_base_freq");
  EXPECT_EQ(std::get<RotaryOptions>(model().local_positions), RotaryOptions{.base = 10000});
  // Beside "rope_parameters" the older field changes the global layers alone.
  fields["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2}};
  EXPECT_EQ(std::get<RotaryOptions>(model().positions).factor, 2);
  EXPECT_EQ(std::get<RotaryOptions>(model().local_positions), RotaryOptions{.base = 10000});
}

TEST(HubRotary, TheTrainedLengthOfPhi3IsNotReadInTheTable) {
  const TransformerConfig c = small_rotary_model(R"({"model_type": "phi3", "rope_scaling": {"rope_type": "longrope",
      "short_factor": [1, 2, 3, 4], "original_max_position_embeddings": 64}})");
  EXPECT_EQ(c.context_length, 4096);
  EXPECT_EQ(std::get<RotaryOptions>(c.positions).factor, 2);
}

TEST(HubRotary, Phi3CalledLongropeYarn) {
  Json json = Json::parse(kLongrope);
  json["rope_scaling"]["type"] = "yarn";
  EXPECT_EQ(rotary_of({json, "config.json"}, {}), rotary_of(config_of(kLongrope), {}));
}

TEST(HubRotary, TheFirstLlamaHasNoFieldForItsContext) {
  TransformerConfig c;
  const HubConfig first = config_of(R"({"max_sequence_length": 2048})");
  set_rotary(c, first, {.context_length = 2048});
  EXPECT_EQ(c.context_length, 2048);
  EXPECT_THAT(message_of<ConfigError>([&] { set_rotary(c, first, {}); }), HasSubstr("max_position_embeddings"));
}

}  // namespace
}  // namespace attune
