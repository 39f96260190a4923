// What loaders of foreign models have got wrong, one test for each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "attune/hub/families.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/hub/translate.h"
#include "attune/models/encoder_classifier.h"
#include "tests/hub/changed_folder.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using testing::HasSubstr;

TEST(HubTraps, NamesWithoutTheBaseModelsName) {
  ChangedFolder gpt2("gpt2");
  const std::vector<float> expected = outputs(gpt2.open());
  gpt2.rename([](const std::string& name) { return replaced(name, "transformer.", ""); });
  EXPECT_EQ(outputs(gpt2.open()), expected);
}

TEST(HubTraps, NormsThatAreCalledGammaAndBeta) {
  ChangedFolder bert("bert-classifier");
  const std::vector<float> expected = outputs(bert.open());
  bert.rename([](const std::string& name) {
    return replaced(replaced(name, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias", "LayerNorm.beta");
  });
  EXPECT_EQ(outputs(bert.open()), expected);
}

TEST(HubTraps, TheFirstTwoPositionsOfBartAndRobertaAreForPadding) {
  for (const auto& [name, table] :
       std::map<std::string, std::string>{{"bart", "model.encoder.embed_positions.weight"},
                                          {"roberta-masked", "roberta.embeddings.position_embeddings.weight"}}) {
    ChangedFolder model(name);
    const std::vector<float> expected = outputs(model.open());
    const Tensor positions = model.tensors.at(table);
    for (int64_t i = 0; i < 2 * positions.size(1); ++i) positions.data<float>()[i] = 7;
    EXPECT_EQ(outputs(model.open()), expected) << name;
    positions.data<float>()[2 * positions.size(1)] += 1;
    EXPECT_NE(outputs(model.open()), expected) << name;
  }
}

TEST(HubTraps, TheProjectionIsTiedWhereItHasNoTensorWhateverTheFlagSays) {
  ChangedFolder gpt2("gpt2");
  const std::vector<float> tied = outputs(gpt2.open());
  gpt2.config["tie_word_embeddings"] = false;
  EXPECT_EQ(outputs(gpt2.open()), tied);

  gpt2.config["tie_word_embeddings"] = true;
  gpt2.tensors["lm_head.weight"] = Tensor::zeros(gpt2.tensors.at("transformer.wte.weight").shape());
  EXPECT_FALSE(gpt2.open().config().share_projection);
  for (const float logit : outputs(gpt2.open())) EXPECT_EQ(logit, 0);
}

TEST(HubTraps, ATiedMatrixIsReadUnderTheProjectionsName) {
  for (const auto& [name, embedding] : std::map<std::string, std::string>{{"gpt2", "transformer.wte.weight"},
                                                                          {"starcoder2", "model.embed_tokens.weight"},
                                                                          {"bart", "model.shared.weight"},
                                                                          {"t5", "shared.weight"}}) {
    ChangedFolder model(name);
    const std::vector<float> expected = outputs(model.open());
    model.rename([&own = embedding](const std::string& tensor) { return tensor == own ? "lm_head.weight" : tensor; });
    EXPECT_EQ(outputs(model.open()), expected) << name;
    EXPECT_TRUE(model.open().config().share_projection) << name;
    model.config["tie_word_embeddings"] = false;
    EXPECT_THAT(model.refusal(), HasSubstr("numbers, but config.json")) << name;  // those of two matrices
  }
}

TEST(HubTraps, WhetherMatricesAreTiedByDefaultDependsOnTheModelType) {
  for (const auto& [name, embedding] : std::map<std::string, std::string>{
           {"gpt2", "transformer.wte.weight"}, {"starcoder2", "model.embed_tokens.weight"}, {"t5", "shared.weight"}}) {
    ChangedFolder model(name);
    const std::vector<float> expected = outputs(model.open());
    model.rename([&own = embedding](const std::string& tensor) { return tensor == own ? "lm_head.weight" : tensor; });
    model.config.erase("tie_word_embeddings");
    EXPECT_EQ(outputs(model.open()), expected) << name;
    EXPECT_TRUE(model.open().config().share_projection) << name;
  }
  const auto tied = [](const char* type) {
    const HubConfig config(Json{{"model_type", type}}, "config.json");
    return is_tied(config, family_of(config));
  };
  for (const char* type : {"t5", "gpt2", "opt", "starcoder2", "gemma2", "gemma3_text", "bert", "modernbert", "bart",
                           "mbart", "marian", "m2m_100"})
    EXPECT_TRUE(tied(type)) << type;
  for (const char* type : {"mt5", "llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe", "gpt_neox", "phi3",
                           "deepseek_v2", "deepseek_v3"})
    EXPECT_FALSE(tied(type)) << type;
}

TEST(HubTraps, TheTypeComesFromTheTensors) {
  ChangedFolder gpt2("gpt2");
  const std::vector<float> expected = outputs(gpt2.open());
  gpt2.config["dtype"] = gpt2.config["torch_dtype"] = "float16";
  EXPECT_EQ(outputs(gpt2.open()), expected);
}

TEST(HubTraps, Float64BecomesFloat32) {
  ChangedFolder gpt2("gpt2");
  const std::vector<float> expected = outputs(gpt2.open());
  for (auto& [name, tensor] : gpt2.tensors) tensor = tensor.to(DType::f64);
  EXPECT_EQ(outputs(gpt2.open()), expected);
}

TEST(HubTraps, CausalMasksInOldFilesAreNoPartOfTheModel) {
  ChangedFolder gpt2("gpt2");
  const std::vector<float> expected = outputs(gpt2.open());
  gpt2.tensors["transformer.h.0.attn.bias"] = Tensor::zeros({1, 1, 4, 4});
  EXPECT_EQ(outputs(gpt2.open()), expected);
}

TEST(HubTraps, AnUnknownTensorIsRefused) {
  ChangedFolder gpt2("gpt2");
  gpt2.tensors["transformer.h.0.attn.c_gate.weight"] = Tensor::zeros({4});
  EXPECT_THAT(gpt2.refusal(), HasSubstr("tensor \"transformer.h.0.attn.c_gate.weight\" is unknown to the model"));
}

// transformers adds none.
TEST(HubTraps, ABiasOfLogitsThatNoClassHasIsRefused) {
  ChangedFolder gpt2("gpt2");
  gpt2.tensors["lm_head.bias"] = Tensor::full({400}, 1);
  EXPECT_THAT(gpt2.refusal(), HasSubstr("tensor \"lm_head.bias\" is unknown to the model"));
  ChangedFolder m2m100("m2m100");
  m2m100.tensors["final_logits_bias"] = Tensor::full({1, 64}, 1);
  EXPECT_THAT(m2m100.refusal(), HasSubstr("tensor \"final_logits_bias\" is unknown to the model"));
}

TEST(HubTraps, AMissingTensorAndAnotherShapeAreRefused) {
  ChangedFolder gpt2("gpt2");
  const Tensor norm = gpt2.tensors.extract("transformer.ln_f.weight").mapped();
  gpt2.tensors["transformer.h.0.attn.bias"] = norm;  // as many numbers
  EXPECT_THAT(gpt2.refusal(), HasSubstr("has no tensor \"transformer.ln_f.weight\""));
  gpt2.tensors["transformer.ln_f.weight"] = Tensor::zeros({norm.size(0) + 1});
  EXPECT_THAT(gpt2.refusal(), HasSubstr("tensor \"transformer.ln_f.weight\" has shape [65]"));
}

TEST(HubTraps, ScoresAreNotScaledWhereGpt2SaysSo) {
  ChangedFolder gpt2("gpt2");
  EXPECT_EQ(std::get<MultiHead>(gpt2.open().config().attention).scale, 0);
  gpt2.config["scale_attn_weights"] = false;
  EXPECT_EQ(std::get<MultiHead>(gpt2.open().config().attention).scale, 1);
}

TEST(HubTraps, ScoresAreScaledByLayerWhereGpt2SaysSo) {
  ChangedFolder gpt2("gpt2");
  gpt2.config["reorder_and_upcast_attn"] = true;  // changes the precision of transformers alone
  EXPECT_FALSE(std::get<MultiHead>(gpt2.open().config().attention).scale_by_layer);
  const std::vector<float> before = outputs(gpt2.open());
  gpt2.config["scale_attn_by_inverse_layer_idx"] = true;
  EXPECT_TRUE(std::get<MultiHead>(gpt2.open().config().attention).scale_by_layer);
  const std::vector<float> found = outputs(gpt2.open());
  EXPECT_NE(found, before);
  // The same as queries that are divided by the number of the layer.
  gpt2.config["scale_attn_by_inverse_layer_idx"] = false;
  for (auto& [name, tensor] : gpt2.tensors) {
    if (!name.starts_with("transformer.h.1.attn.c_attn")) continue;
    const int64_t columns = tensor.size(-1);
    tensor = tensor.clone();
    const auto values = tensor.values<float>();
    for (size_t i = 0; i < values.size(); ++i)
      if (static_cast<int64_t>(i) % columns < columns / 3) values[i] /= 2;
  }
  EXPECT_LT(relative_difference(outputs(gpt2.open()), found), 1e-6);
}

TEST(HubTraps, QuickGeluIsTheSigmoidFormOfGelu) {
  ChangedFolder gpt2("gpt2");
  gpt2.config["activation_function"] = "quick_gelu";
  EXPECT_EQ(gpt2.open().config().activation, FeedForwardActivation::gelu_sigmoid);
}

TEST(HubTraps, LayersOfAlbertAreThoseOfItsGroups) {
  ChangedFolder albert("albert-groups");
  const TransformerConfig found = albert.open().config();
  EXPECT_EQ(found.layers, 8);
  EXPECT_EQ(found.layer_groups, 2);
  EXPECT_EQ(found.layer_block, 2);
  EXPECT_EQ(found.embedding_dim, found.d_model);  // a projection all the same
  albert.config["num_hidden_groups"] = 3;
  EXPECT_THAT(albert.refusal(), HasSubstr("layer_groups = 3 and layer_block = 2: their product has to divide"));
}

TEST(HubTraps, ElectraProjectsItsEmbeddingsWhereTheyHaveAnotherWidth) {
  ChangedFolder electra("electra-classifier");
  EXPECT_EQ(electra.open().config().embedding_dim, 8);
  electra.rename([](const std::string& name) { return replaced(name, "embeddings_project.weight", "project.weight"); });
  EXPECT_THAT(electra.refusal(), HasSubstr("has no tensor \"electra.embeddings_project.weight\""));
}

TEST(HubTraps, OnlyGemma2CapsItsScores) {
  const HubTensors tensors(source_dir() / "tests/hub/models/gpt2", "model.");
  for (const auto& [type, cap] : {std::pair("gemma2", 30.0), std::pair("gemma3_text", 0.0)}) {
    const HubConfig config(Json{{"model_type", type},
                                {"vocab_size", 600},
                                {"hidden_size", 64},
                                {"num_attention_heads", 4},
                                {"num_hidden_layers", 2},
                                {"intermediate_size", 128},
                                {"max_position_embeddings", 64},
                                {"sliding_window", 8},
                                {"attn_logit_softcapping", 30.0}},
                           "config.json");
    const TransformerConfig found = gemma_family().translate(
        {.config = config, .tensors = tensors, .architecture = Architecture::decoder_lm, .class_name = ""});
    EXPECT_EQ(std::get<MultiHead>(found.attention).soft_cap, cap) << type;
  }
}

TEST(HubTraps, WhatIsNotSupportedIsRefusedWithFieldAndValue) {
  const auto refusal = [](const char* field, const Json& value) {
    ChangedFolder gpt2("gpt2");
    gpt2.config[field] = value;
    return gpt2.refusal();
  };
  EXPECT_THAT(refusal("model_type", "jamba"),
              HasSubstr("config.json: model_type = \"jamba\": mixtures of experts of this family are not supported"));
  EXPECT_THAT(refusal("model_type", "rwkv"), HasSubstr("model_type = \"rwkv\": is not supported, needs one of bert"));
  EXPECT_THAT(refusal("architectures", {"GPT2DoubleHeadsModel"}),
              HasSubstr("architectures = [\"GPT2DoubleHeadsModel\"]: is not supported"));
  EXPECT_THAT(refusal("activation_function", "laplace"), HasSubstr("activation_function = \"laplace\""));
  EXPECT_THAT(refusal("add_cross_attention", true), HasSubstr("add_cross_attention = true"));
  EXPECT_THAT(refusal("n_embd", 1e9), HasSubstr("d_model = 1000000000"));
  EXPECT_THAT(refusal("n_embd", -64), HasSubstr("n_embd = -64"));
  EXPECT_THAT(refusal("n_embd", "64"), HasSubstr("n_embd = \"64\": needs an integer"));
  EXPECT_THAT(refusal("n_layer", 1000), HasSubstr("numbers, but config.json"));
}

TEST(HubTraps, MasksOfTheOtherDirectionAreRefused) {
  const auto refusal = [](const char* name, bool causal) -> std::string {
    ChangedFolder model(name);
    model.config["is_causal"] = causal;
    try {
      model.open();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("gpt2", true), "");
  EXPECT_THAT(refusal("gpt2", false), HasSubstr("is_causal = false: is not supported, needs true"));
  EXPECT_EQ(refusal("bert-classifier", false), "");
  EXPECT_THAT(refusal("bert-classifier", true), HasSubstr("is_causal = true: is not supported, needs false"));
  for (const char* name : {"bart", "t5"})
    for (const bool causal : {false, true})
      EXPECT_THAT(refusal(name, causal), HasSubstr(": is for encoder and decoder alike")) << name;
}

TEST(HubTraps, NullIsFalseWhereDeepSeekSaysNothingElse) {
  ChangedFolder deepseek("deepseek-v3-experts");
  for (const char* field : {"rope_interleave", "norm_topk_prob"}) deepseek.config.erase(field);
  const auto pairing = [&] { return std::get<RotaryOptions>(deepseek.open().config().positions).pairing; };
  const auto normalised = [&] { return std::get<Experts>(deepseek.open().config().feed_forward).normalised_weights; };
  EXPECT_EQ(pairing(), RotaryPairing::interleaved);
  EXPECT_TRUE(normalised());
  for (const char* field : {"rope_interleave", "norm_topk_prob"}) deepseek.config[field] = nullptr;
  EXPECT_EQ(pairing(), RotaryPairing::half);
  EXPECT_FALSE(normalised());
}

TEST(HubTraps, GeluHasOlderNames) {
  ChangedFolder gpt2("gpt2");
  gpt2.config["activation_function"] = "gelu_python";
  EXPECT_EQ(gpt2.open().config().activation, FeedForwardActivation::gelu);
  gpt2.config["activation_function"] = "gelu_python_tanh";
  EXPECT_EQ(gpt2.open().config().activation, FeedForwardActivation::gelu_tanh);
}

TEST(HubTraps, AMissingFieldHasItsDefaultAndNullHasNone) {
  const HubTensors tensors(source_dir() / "tests/hub/models/gpt2", "");
  const auto translated = [&](const Json& fields) {
    Json json = {{"vocab_size", 64},       {"hidden_size", 16},       {"num_attention_heads", 2},
                 {"num_hidden_layers", 2}, {"intermediate_size", 24}, {"max_position_embeddings", 8192}};
    json.update(fields);
    const HubConfig config(json, "config.json");
    const Family& family = family_of(config);
    return family.translate(
        {.config = config, .tensors = tensors, .architecture = Architecture::decoder_lm, .class_name = ""});
  };
  const TransformerConfig gemma = translated({{"model_type", "gemma2"}});
  EXPECT_EQ(gemma.logit_soft_cap, 30);
  EXPECT_EQ(std::get<MultiHead>(gemma.attention).soft_cap, 50);
  EXPECT_EQ(gemma.local_window, 4096);
  const TransformerConfig bare =
      translated({{"model_type", "gemma2"}, {"final_logit_softcapping", nullptr}, {"attn_logit_softcapping", nullptr}});
  EXPECT_EQ(bare.logit_soft_cap, 0);
  EXPECT_EQ(std::get<MultiHead>(bare.attention).soft_cap, 0);
  EXPECT_EQ(translated({{"model_type", "gemma3_text"}}).logit_soft_cap, 0);
  const auto pattern_of = [&](const Json& fields) { return std::get<MultiHead>(translated(fields).attention).pattern; };
  EXPECT_EQ(std::get<SlidingWindow>(pattern_of({{"model_type", "mistral"}})).size, 4096);
  EXPECT_FALSE(
      std::holds_alternative<SlidingWindow>(pattern_of({{"model_type", "mistral"}, {"sliding_window", nullptr}})));
  const Json mixtral = {{"model_type", "mixtral"}, {"num_experts_per_tok", 2}};
  EXPECT_EQ(translated(mixtral).norm_epsilon, 1e-5);
  EXPECT_EQ(std::get<RotaryOptions>(translated(mixtral).positions).base, 1e6);
  for (const auto& [type, heads] : std::map<std::string, int64_t>{{"llama", 2},
                                                                  {"mistral", 8},
                                                                  {"mixtral", 8},
                                                                  {"qwen2", 32},
                                                                  {"qwen3", 32},
                                                                  {"qwen3_moe", 4},
                                                                  {"gemma2", 4},
                                                                  {"gemma3_text", 4},
                                                                  {"phi3", 2}}) {
    Json fields = {{"model_type", type}, {"num_experts_per_tok", 2}};
    EXPECT_EQ(std::get<MultiHead>(translated(fields).attention).kv_heads, heads) << type;
    fields["num_key_value_heads"] = nullptr;
    EXPECT_EQ(std::get<MultiHead>(translated(fields).attention).kv_heads, 2) << type;
  }
  EXPECT_EQ(std::get<MultiHead>(translated({{"model_type", "qwen3"}}).attention).head_dim, 128);
  EXPECT_EQ(std::get<MultiHead>(translated({{"model_type", "qwen2"}}).attention).head_dim, 8);
}

TEST(HubTraps, AWindowOfQwen3MoeIsThatOfAllLayers) {
  ChangedFolder qwen("qwen3-moe-dense-layer");
  const auto pattern = [&] { return std::get<MultiHead>(qwen.open().config().attention).pattern; };
  qwen.config.update({{"sliding_window", 8}, {"max_window_layers", 1}, {"layer_types", {"full_attention"}}});
  EXPECT_FALSE(std::holds_alternative<SlidingWindow>(pattern()));
  qwen.config["use_sliding_window"] = true;
  EXPECT_EQ(std::get<SlidingWindow>(pattern()).size, 8);
  EXPECT_TRUE(qwen.open().config().layer_attention.empty());
}

// The scores of labels follow the text classification of transformers.

TEST(HubTraps, OneLabelAndSeveralThatHoldTogetherHaveASigmoid) {
  ChangedFolder bert("bert-classifier");
  EXPECT_EQ(bert.open().config().label_scores, LabelScores::softmax);
  bert.config["problem_type"] = "multi_label_classification";
  EXPECT_EQ(bert.open().config().label_scores, LabelScores::sigmoid);
  bert.config["problem_type"] = "regression";
  EXPECT_EQ(bert.open().config().label_scores, LabelScores::none);
  bert.config["problem_type"] = "ranking";
  EXPECT_THAT(bert.refusal(), HasSubstr("problem_type = \"ranking\": is not supported"));

  bert.config.erase("problem_type");
  bert.config["id2label"] = {{"0", "LABEL_0"}};
  for (const char* name : {"classifier.weight", "classifier.bias"})
    bert.tensors[name] = bert.tensors.at(name).rows(0, 1);
  EXPECT_EQ(bert.open().config().label_scores, LabelScores::sigmoid);
  EXPECT_EQ(outputs(bert.open()).size(), kReadTexts.size());
}

TEST(HubTraps, SeveralEndsAndSuppressedTokensAreHonoured) {
  const TemporaryFolder folder;
  write_json_file(
      folder / "generation_config.json",
      Json::parse(R"({"eos_token_id": [7, 9], "suppress_tokens": [3, 4], "do_sample": true, "top_p": 0.5})"));
  const SamplingConfig found = read_hub_sampling(folder.path(), config_of(R"({"eos_token_id": 2})"));
  EXPECT_THAT(found.eos_tokens, testing::ElementsAre(7, 9));
  EXPECT_THAT(found.suppressed_tokens, testing::ElementsAre(3, 4));
  EXPECT_EQ(found.top_p, 0.5);
  EXPECT_EQ(found.top_k, 50);
}

TEST(HubTraps, RulesOfALanguageModelAreHonouredOrRefused) {
  const TemporaryFolder folder;
  const auto write = [&](const char* json) { write_json_file(folder / "generation_config.json", Json::parse(json)); };
  const auto read = [&] { return read_hub_sampling(folder.path(), config_of(R"({"eos_token_id": 2})")); };
  write(R"({"min_new_tokens": 3, "no_repeat_ngram_size": 2, "begin_suppress_tokens": [5],
            "forced_bos_token_id": 6, "forced_eos_token_id": 2})");
  EXPECT_EQ(read().forced_first_token, 6);
  EXPECT_EQ(read().forced_last_token, 2);
  EXPECT_EQ(read().min_tokens, 3);
  EXPECT_EQ(read().no_repeat_ngram_size, 2);
  EXPECT_THAT(read().suppressed_at_begin, testing::ElementsAre(5));
  for (const auto& [json, message] : std::map<const char*, const char*>{
           {R"({"num_beams": 4})", "num_beams = 4: is not supported, needs 1"},
           {R"({"min_length": 9})", "min_length = 9: counts the prompt too"},
           {R"({"typical_p": 0.5})", "typical_p = 0.5: is not supported, needs 1.0"},
           {R"({"top_h": 0.4})", "top_h = 0.4: is not supported"},
           {R"({"token_healing": true})", "token_healing = true: is not supported"},
           {R"({"forced_eos_token_id": [2, 3]})", "forced_eos_token_id = [2,3]: several tokens"}}) {
    write(json);
    EXPECT_THAT(message_of<ConfigError>(read), HasSubstr(message));
  }
}

TEST(HubTraps, TheEndComesFromConfigJsonWhereGenerationConfigHasNone) {
  const TemporaryFolder folder;
  write_json_file(folder / "generation_config.json", Json::parse("{}"));
  const SamplingConfig found = read_hub_sampling(folder.path(), config_of(R"({"eos_token_id": 2})"));
  EXPECT_THAT(found.eos_tokens, testing::ElementsAre(2));
  EXPECT_EQ(found.temperature, 0);
}

}  // namespace
}  // namespace attune
