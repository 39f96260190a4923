// What others fell into: each is a change of one of the folders of tests/hub/models, or a look at what was read of it.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "attune/autograd/graph.h"
#include "attune/hub/families.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/models/transformer.h"
#include "tests/hub/hub_model.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Tensors = std::map<std::string, Tensor>;

// A copy of a folder with another config.json, and other tensors.
class Copy {
 public:
  explicit Copy(const std::string& name, const std::function<void(Json&)>& change = {},
                const std::function<void(Tensors&)>& change_tensors = {})
      : folder_(memory_folder()) {
    const std::filesystem::path from = source_dir() / "tests/hub/models" / name;
    std::filesystem::copy(from, folder_.path(), std::filesystem::copy_options::recursive);
    Json config = read_json_file(from / "config.json");
    if (change) change(config);
    write_json_file(folder_ / "config.json", config);
    if (!change_tensors) return;
    const SafetensorsReader reader(from / "model.safetensors");
    Tensors tensors;
    for (const std::string& tensor : reader.names()) tensors.emplace(tensor, reader.load(tensor));
    change_tensors(tensors);
    std::vector<NamedTensor> named;
    for (const auto& [tensor_name, tensor] : tensors) named.push_back({tensor_name, tensor});
    write_safetensors(folder_ / "model.safetensors", named);
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  HubFolder hub() const { return HubFolder(folder_.path()); }
  GenerationConfig generation() const { return read_hub_generation(path(), hub().hub_config()); }
  std::string refusal() const {
    return message_of<Error>([&] { hub(); });
  }
  /// The logits of an encoder-decoder for one source and one target.
  std::vector<float> logits() const {
    const NoGrad no_grad;
    const std::unique_ptr<Module> module = hub().load(LoadedWeights::mapped);
    const auto& model = dynamic_cast<const Transformer&>(*module);
    const PackedTokens source = packed({{7, 30, 12, 1}}), target = packed({{0, 9, 21}});
    return host_values<float>(model.project(model.decode(model.encode(source), source.sequences, target)));
  }

 private:
  TemporaryFolder folder_;
};

void write_generation(const Copy& copy, const Json& json) {
  write_json_file(copy.path() / "generation_config.json", json);
}

TEST(EncoderDecoderTraps, MarianBeginsWithPadAndEndsAsAsked) {
  const GenerationConfig g = Copy("marian").generation();
  EXPECT_EQ(g.start_token, 2);
  EXPECT_EQ(g.eos_tokens, std::vector<int64_t>{0});
  EXPECT_EQ(g.forced_last_token, 0);
  EXPECT_TRUE(g.special_tokens);
  EXPECT_TRUE(g.rank_unfinished);
}

TEST(EncoderDecoderTraps, MarianBiasOfLogitsIsAdded) {
  const std::vector<float> expected = Copy("marian").logits();
  const std::vector<float> found = Copy("marian", {}, [](Tensors& t) {
                                     for (float& value : t.at("final_logits_bias").values<float>()) value += 3;
                                   }).logits();
  for (size_t i = 0; i < expected.size(); i += 37) EXPECT_NEAR(found[i], expected[i] + 3, 1e-3);
}

TEST(EncoderDecoderTraps, MarianHasAllSinesFirst) {
  const auto positions = std::get<SinusoidalPositions>(Copy("marian").hub().config().positions);
  EXPECT_EQ(positions, (SinusoidalPositions{.order = SinusoidOrder::halves}));
}

TEST(EncoderDecoderTraps, MarianWithTwoVocabularies) {
  const Copy copy(
      "marian",
      [](Json& c) {
        c["share_encoder_decoder_embeddings"] = false;
        c["decoder_vocab_size"] = 390;
      },
      [](Tensors& t) {
        t["model.encoder.embed_tokens.weight"] = t.at("model.shared.weight");
        t["model.decoder.embed_tokens.weight"] = t.at("model.shared.weight").rows(0, 390);
        t["final_logits_bias"] = t.at("final_logits_bias").reshape({400}).rows(0, 390).reshape({1, 390});
        t.erase("model.shared.weight");
      });
  const std::vector<float> expected = Copy("marian").logits(), found = copy.logits();
  ASSERT_EQ(found.size(), 3 * 390);
  for (size_t i = 0; i < 390; i += 13) EXPECT_NEAR(found[i], expected[i], 1e-3);
}

// transformers 5 writes three tables then, and reads the shared one nowhere.
TEST(EncoderDecoderTraps, TablesThatAreNotTiedAreThoseOfTheirSide) {
  const auto own_tables = [](Tensors& t) {
    const Tensor table = t.at("model.shared.weight");
    for (const char* name :
         {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"})
      t[name] = table;
    t["model.shared.weight"] = Tensor::zeros(table.shape());
  };
  const Copy untied(
      "marian", [](Json& c) { c["tie_word_embeddings"] = false; }, own_tables);
  EXPECT_FALSE(untied.hub().config().share_embeddings);
  EXPECT_EQ(untied.logits(), Copy("marian").logits());
  EXPECT_TRUE(Copy("marian", {}, own_tables).hub().config().share_embeddings);
}

TEST(EncoderDecoderTraps, T5IsNotScaledAndItsLayersShareOneBias) {
  const HubFolder hub = Copy("t5").hub();
  EXPECT_EQ(std::get<MultiHead>(hub.config().encoder_attention).scale, 1);
  EXPECT_EQ(std::get<MultiHead>(hub.config().cross_attention).scale, 1);
  const std::unique_ptr<Module> model = hub.load(LoadedWeights::mapped);
  std::vector<std::string> biases;
  for (const NamedParameter& p : named_parameters(*model))
    if (p.name.find("relative_bias") != std::string::npos) biases.push_back(p.name);
  EXPECT_EQ(biases, (std::vector<std::string>{"encoder.relative_bias.weight", "decoder.relative_bias.weight"}));
}

TEST(EncoderDecoderTraps, T5ScalesTheStatesOfATiedProjection) {
  EXPECT_DOUBLE_EQ(Copy("t5").hub().config().logit_scale, 1 / std::sqrt(64.0));
  const auto without_flag = [](Json& c) { c.erase("scale_decoder_outputs"); };
  EXPECT_DOUBLE_EQ(Copy("t5", without_flag).hub().config().logit_scale, 1 / std::sqrt(64.0));
  const auto untied = [](Json& c) {  // as transformers 4 wrote version 1.1
    c.erase("scale_decoder_outputs");
    c["tie_word_embeddings"] = false;
  };
  EXPECT_EQ(Copy("t5", untied).hub().config().logit_scale, 1);
  EXPECT_EQ(Copy("t5", [](Json& c) { c["scale_decoder_outputs"] = false; }).hub().config().logit_scale, 1);
  EXPECT_EQ(Copy("t5",
                 [](Json& c) {
                   c["model_type"] = "mt5";
                   c["architectures"] = Json::array();
                   c["feed_forward_proj"] = "relu";
                 })
                .hub()
                .config()
                .logit_scale,
            1);
}

TEST(EncoderDecoderTraps, AProjectionIsTiedWhereThereIsNoTensorOfItsOwn) {
  EXPECT_TRUE(Copy("t5", [](Json& c) { c["tie_word_embeddings"] = false; }).hub().config().share_projection);
  const Copy own("t5", {}, [](Tensors& t) {
    Tensor head = Tensor::zeros({400, 64}, {.dtype = DType::f32});
    t["lm_head.weight"] = head;
  });
  EXPECT_FALSE(own.hub().config().share_projection);
  for (const float logit : own.logits()) EXPECT_EQ(logit, 0);
}

TEST(EncoderDecoderTraps, SharedTablesUnderTheirOtherNames) {
  const Copy old("t5", {}, [](Tensors& t) {
    t["encoder.embed_tokens.weight"] = t["decoder.embed_tokens.weight"] = t.at("shared.weight");
    t["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
        Tensor::zeros({32, 4}, {.dtype = DType::f32});
  });
  EXPECT_EQ(old.logits(), Copy("t5").logits());
  const Copy without("t5", {}, [](Tensors& t) {
    t["encoder.embed_tokens.weight"] = t.at("shared.weight");
    t.erase("shared.weight");
  });
  EXPECT_EQ(without.logits(), old.logits());
}

TEST(EncoderDecoderTraps, T5WithUnequalStacks) {
  const Copy copy(
      "t5", [](Json& c) { c["num_decoder_layers"] = 1; },
      [](Tensors& t) { std::erase_if(t, [](const auto& p) { return p.first.starts_with("decoder.block.1."); }); });
  EXPECT_EQ(copy.hub().config().of_decoder().layers, 1);
  EXPECT_EQ(copy.logits().size(), 3 * 400);
}

TEST(EncoderDecoderTraps, T5RefusesADistanceThatItsBucketsReach) {
  const Copy copy("t5", [](Json& c) {
    c["relative_attention_num_buckets"] = 32;
    c["relative_attention_max_distance"] = 10;
  });
  EXPECT_NE(copy.refusal().find("relative_attention_max_distance = 10: "), std::string::npos) << copy.refusal();
}

TEST(EncoderDecoderTraps, T5RefusesAnActivationByItsField) {
  const Copy copy("t5", [](Json& c) {
    c["feed_forward_proj"] = "gated-maxout";
    c.erase("dense_act_fn");
  });
  EXPECT_NE(copy.refusal().find("feed_forward_proj = \"maxout\""), std::string::npos) << copy.refusal();
  const Copy later("t5", [](Json& c) { c["dense_act_fn"] = "maxout"; });
  EXPECT_NE(later.refusal().find("dense_act_fn = \"maxout\""), std::string::npos) << later.refusal();
}

// transformers makes these fields of feed_forward_proj, and then takes what the file has.
TEST(EncoderDecoderTraps, T5TakesItsActivationFromTheLaterFields) {
  const auto activation = [](const char* name, const Json& later) {
    Json json = {{"model_type", "t5"}, {"vocab_size", 8}, {"d_model", 8}, {"num_heads", 2},
                 {"d_kv", 4},          {"num_layers", 1}, {"d_ff", 8},    {"feed_forward_proj", name}};
    json.update(later);
    const HubConfig config(json, "config.json");
    const HubTensors tensors(source_dir() / "tests/hub/models/t5", "");
    return t5_family()
        .translate(
            {.config = config, .tensors = tensors, .architecture = Architecture::encoder_decoder, .class_name = ""})
        .activation;
  };
  EXPECT_EQ(activation("gated-gelu", Json::object()), FeedForwardActivation::geglu_tanh);
  EXPECT_EQ(activation("gated-gelu", {{"dense_act_fn", "gelu"}}), FeedForwardActivation::geglu);
  EXPECT_EQ(activation("relu", {{"dense_act_fn", "silu"}, {"is_gated_act", true}}), FeedForwardActivation::swiglu);
}

TEST(EncoderDecoderTraps, TheFirstFilesOfBartHaveANumberForNothing) {
  const Copy old("bart", {}, [](Tensors& t) {
    for (const char* name : {"model.encoder.version", "model.decoder.version"}) t[name] = Tensor::full({1}, 3);
  });
  EXPECT_EQ(old.logits(), Copy("bart").logits());
}

TEST(EncoderDecoderTraps, DeepSeekWithoutExpertsInAnyLayerIsDense) {
  EXPECT_EQ(Copy("deepseek-v3-yarn").hub().config().layers, 2);
  const Copy experts("deepseek-v3-yarn", [](Json& c) { c["first_k_dense_replace"] = 1; });
  EXPECT_NE(experts.refusal().find("numbers, but config.json"), std::string::npos) << experts.refusal();
}

TEST(EncoderDecoderTraps, DeepSeekRotatesNeighboursAndCorrectsTheScaleTwice) {
  const TransformerConfig c = Copy("deepseek-v3-yarn").hub().config();
  const auto& rotary = std::get<RotaryOptions>(c.positions);
  EXPECT_EQ(rotary.pairing, RotaryPairing::interleaved);
  const auto correction = [](double mscale) { return 0.1 * mscale * std::log(4.0) + 1; };
  EXPECT_DOUBLE_EQ(rotary.magnitude, correction(1.0) / correction(0.8));
  EXPECT_DOUBLE_EQ(std::get<MultiHeadLatent>(c.attention).scale, correction(0.8) * correction(0.8) / std::sqrt(24.0));
  const auto halves = [](Json& json) { json["rope_interleave"] = false; };
  EXPECT_EQ(std::get<RotaryOptions>(Copy("deepseek-v3-yarn", halves).hub().config().positions).pairing,
            RotaryPairing::half);
}

TEST(EncoderDecoderTraps, DeepSeekOfTransformers4) {
  const Copy old("deepseek-v3-yarn", [](Json& c) {
    c["rope_scaling"] = c["rope_parameters"];
    c["rope_scaling"]["type"] = "yarn";
    c["rope_scaling"].erase("rope_type");
    c["rope_scaling"].erase("rope_theta");
    c["rope_theta"] = 10000.0;
    c.erase("rope_parameters");
  });
  EXPECT_EQ(old.hub().config(), Copy("deepseek-v3-yarn").hub().config());
}

TEST(EncoderDecoderTraps, GenerationConfigIsHonoured) {
  const Copy copy("t5");
  write_generation(copy, {{"decoder_start_token_id", 5},
                          {"eos_token_id", {1, 7}},
                          {"forced_bos_token_id", 9},
                          {"forced_eos_token_id", 1},
                          {"suppress_tokens", Json::array({3})},
                          {"begin_suppress_tokens", {4, 6}},
                          {"bad_words_ids", Json::parse("[[0], [7], [3, 4], [0], [5, 7], [3, 4]]")},
                          {"num_beams", 4},
                          {"max_length", 64},
                          {"length_penalty", 0.8},
                          {"renormalize_logits", true},
                          {"early_stopping", true}});
  const GenerationConfig g = copy.generation();
  EXPECT_EQ(g.start_token, 5);
  EXPECT_EQ(g.eos_tokens, (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(g.forced_first_token, 9);
  EXPECT_EQ(g.forced_last_token, 1);
  EXPECT_EQ(g.suppressed_tokens, (std::vector<int64_t>{3, 0}));  // once; 7 ends an output
  EXPECT_EQ(g.suppressed_phrases, (std::vector<std::vector<int64_t>>{{3, 4}, {5, 7}}));
  EXPECT_EQ(g.suppressed_at_begin, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(g.beam_size, 4);
  EXPECT_EQ(g.max_length, 63);  // without the start token
  EXPECT_EQ(g.length_penalty, 0.8);
  EXPECT_TRUE(g.renormalize_logits);
  EXPECT_EQ(g.early_stopping, EarlyStopping::first);
}

// transformers leaves the end out as long as an output is too short, which may be always.
TEST(EncoderDecoderTraps, TheLeastLengthMayBeTheMost) {
  const Copy copy("t5");
  write_generation(copy,
                   {{"decoder_start_token_id", 0}, {"eos_token_id", 1}, {"min_new_tokens", 9}, {"max_new_tokens", 5}});
  EXPECT_EQ(copy.generation().min_length, 5);
  EXPECT_EQ(copy.generation().max_length, 5);
}

TEST(EncoderDecoderTraps, TheFirstFoldersOfBartForceTheirBosByAFlag) {
  const Copy old("bart", [](Json& c) { c["force_bos_token_to_be_generated"] = true; });
  EXPECT_EQ(old.generation().forced_first_token, -1) << "generation_config.json counts";
  Json settings = read_json_file(old.path() / "generation_config.json");
  settings["force_bos_token_to_be_generated"] = true;
  write_generation(old, settings);
  EXPECT_EQ(old.generation().forced_first_token, 0);
  settings.erase("_from_model_config");
  write_generation(old, settings);
  EXPECT_EQ(old.generation().forced_first_token, -1);
  std::filesystem::remove(old.path() / "generation_config.json");
  EXPECT_EQ(old.generation().forced_first_token, 0);
}

TEST(EncoderDecoderTraps, WithoutGenerationConfigTheConfigSaysIt) {
  const Copy copy("marian", [](Json& c) {
    c["bad_words_ids"] = Json::parse("[[2]]");
    c["num_beams"] = 6;
    c["max_length"] = 512;
  });
  std::filesystem::remove(copy.path() / "generation_config.json");
  const GenerationConfig g = copy.generation();
  EXPECT_EQ(g.suppressed_tokens, std::vector<int64_t>{2});
  EXPECT_EQ(g.beam_size, 6);
  EXPECT_EQ(g.max_length, 511);
  EXPECT_EQ(g.early_stopping, EarlyStopping::heuristic);
}

TEST(EncoderDecoderTraps, GenerationConfigRefusesByName) {
  const Copy copy("t5");
  const auto refusal = [&](const Json& json) {
    write_generation(copy, json);
    return message_of<ConfigError>([&] { copy.generation(); });
  };
  EXPECT_NE(refusal({{"force_words_ids", Json::parse("[[3]]")}}).find("force_words_ids = [[3]]: is not supported"),
            std::string::npos);
  EXPECT_NE(refusal({{"bad_words_ids", Json::parse("[[3], []]")}}).find("a phrase has no tokens"), std::string::npos);
  EXPECT_NE(refusal({{"num_beams", 0}}).find("num_beams = 0"), std::string::npos);
  EXPECT_NE(refusal({{"length_penalty", -2.0}}).find("length_penalty = -2"), std::string::npos);
  EXPECT_NE(refusal({{"renormalize_logits", true}, {"repetition_penalty", 1.2}, {"num_beams", 4}})
                .find("needs repetition_penalty = 1"),
            std::string::npos);
}

}  // namespace
}  // namespace attune
