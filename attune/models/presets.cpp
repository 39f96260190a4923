#include "attune/models/presets.h"

#include <fmt/format.h>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"

namespace attune {
namespace {

// Vaswani et al. 2017, sections 5 and 6.1. A batch of 25,000 tokens of each side is accumulated from eight of 3,125.
// The model is the mean of the last checkpoints. They were written every ten minutes: 1,500 steps of the base model
// (0.4 s each), or 600 of the big one (1 s each).
std::string paper(int64_t steps, int64_t checkpoint_every, int64_t averaged) {
  Json training = Json::parse(R"({
    "optimizer": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
    "schedule": {"kind": "noam", "warmup_steps": 4000},
    "train": {"label_smoothing": 0.1, "batch_tokens": 3125, "accumulate": 8},
    "generation": {"beam_size": 4, "length_penalty": 0.6, "max_length_ratio": 1, "max_length_offset": 50}})");
  training["train"].update({{"steps", steps},
                            {"checkpoint_every", checkpoint_every},
                            {"keep_checkpoints", averaged},
                            {"average_checkpoints", averaged}});
  return training.dump();
}

std::string paper() {
  return paper(100000, 1500, 5);
}

constexpr const char* kPaperDiffers =
    "Matrices begin as Xavier's, which the paper does not name. Batches of 25,000 tokens are eight of 3,125";

constexpr const char* kFineTuning = R"({
  "optimizer": {"kind": "adamw", "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "clip_norm": 1},
  "schedule": {"kind": "linear", "learning_rate": 5e-4, "warmup_steps": 100},
  "train": {"steps": 2000, "label_smoothing": 0}})";

constexpr const char* kGpt = R"({
  "optimizer": {"kind": "adamw", "beta_1": 0.9, "beta_2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 1},
  "schedule": {"kind": "cosine", "learning_rate": 6e-4, "final_learning_rate": 6e-5, "warmup_steps": 2000},
  "train": {"label_smoothing": 0}})";

constexpr const char* kGptCharacters = R"({
  "optimizer": {"kind": "adamw", "beta_1": 0.9, "beta_2": 0.99, "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 1},
  "schedule": {"kind": "cosine", "learning_rate": 4e-3, "final_learning_rate": 1e-4, "warmup_steps": 100},
  "train": {"steps": 2000, "batch_tokens": 768, "label_smoothing": 0, "valid_every": 500}})";

constexpr const char* kBertDiffers =
    "For training from scratch on labelled text: fine-tuning a pretrained model takes a learning rate of 2e-5 to 5e-5 "
    "and 2 to 4 epochs in batches of 16 or 32 texts. No segment embeddings";

std::string bert(int64_t d_model, int64_t heads, int64_t layers) {
  Json model = Json::parse(R"({"architecture": "encoder_classifier",
                            "positions": {"kind": "learned", "max_length": 512}, "activation_dropout": 0,
                            "norm": "post", "norm_epsilon": 1e-12, "activation": "gelu", "scale_embeddings": false,
                            "embedding_norm": true, "initialization": "normal", "pooler": true})");
  model.update({{"d_model", d_model}, {"heads", heads}, {"layers", layers}, {"d_ff", 4 * d_model}});
  return model.dump();
}

std::vector<Preset> make_presets() {
  return {
      {"transformer-base", "Vaswani et al. 2017, table 3, base: post-norm, ReLU, sinusoids, shared embeddings", 37000,
       R"({"norm": "post", "attention_dropout": 0, "activation_dropout": 0,
                    "share_embeddings": true, "share_projection": true})",
       paper(), kPaperDiffers},
      {"transformer-big", "Vaswani et al. 2017, table 3, big", 37000,
       R"({"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3, "attention_dropout": 0,
                    "activation_dropout": 0, "norm": "post", "share_embeddings": true, "share_projection": true})",
       paper(300000, 600, 20), fmt::format("{}. English-French had dropout 0.1", kPaperDiffers)},
      {"transformer-base-latent", "transformer-base with latent attention everywhere and pre-norm", 37000,
       R"({"encoder_attention": "latent", "decoder_attention": "latent", "cross_attention": "latent",
                    "share_embeddings": true, "share_projection": true})",
       paper(),
       "The attention and pre-norm are not the paper's; dropout on attention weights and inside the feed-forward "
       "network too"},
      {"transformer-tiny", "128/4/4/256, the Multi30k model of Wu et al. 2021", 9712,
       R"({"d_model": 128, "heads": 4, "layers": 4, "d_ff": 256, "dropout": 0.3, "attention_dropout": 0,
                    "activation_dropout": 0, "norm": "post", "embedding_initialization": "normal",
                    "share_embeddings": true, "share_projection": true})",
       R"({
         "optimizer": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9},
         "schedule": {"kind": "inverse_sqrt", "learning_rate": 0.005, "warmup_steps": 2000},
         "train": {"steps": 8000, "batch_tokens": 8000, "label_smoothing": 0.1, "checkpoint_every": 0,
                   "checkpoint_every_epochs": 1, "keep_checkpoints": 10, "average_checkpoints": 10},
         "generation": {"beam_size": 5, "length_penalty": 1}})",
       "Batches of 8,000 tokens, length_penalty 1 and the projection's bias are ours"},
      {"marian-base", "Marian's Transformer as OPUS-MT trains it (Tiedemann and Thottingal 2020): post-norm, swish",
       58101,
       R"({"attention_dropout": 0, "activation_dropout": 0, "positions": {"kind": "sinusoidal", "order": "halves"},
                    "norm": "post", "activation": "silu", "share_embeddings": true, "share_projection": true})",
       R"({
         "optimizer": {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9, "clip_norm": 5},
         "schedule": {"kind": "inverse_sqrt", "learning_rate": 0.0003, "warmup_steps": 16000},
         "train": {"label_smoothing": 0.1},
         "generation": {"beam_size": 6, "length_penalty": 1, "length_normalization": "power"}})",
       "No smoothing of the parameters and no guided alignment. Sinusoids have the frequencies that transformers gives "
       "them, 10000^(-2i/d); Marian's are 10000^(-i / (d/2 - 1)). train.steps and train.batch_tokens are to be set"},
      {"paper-post-norm", "the block of Vaswani et al. 2017: LayerNorm(x + sublayer(x)), biases everywhere", 37000,
       R"({"norm": "post", "embedding_initialization": "normal"})", paper(),
       "No shared embeddings; dropout on attention weights and inside the feed-forward network too"},
      {"pre-norm-latent", "x + sublayer(LayerNorm(x)) with the unbiased std, latent attention", 37000,
       R"({"norm": "pre", "norm_form": "unbiased_std", "norm_epsilon": 1e-6,
                    "encoder_attention": "latent", "decoder_attention": "latent", "cross_attention": "latent"})",
       paper(), "A block with the paper's training, of no publication"},
      {"gelu-block", "pre-norm blocks with GELU, as in GPT and BERT, in an encoder-decoder", 37000,
       R"({"norm": "pre", "activation": "gelu"})", paper(), "A block with the paper's training, of no publication"},
      {"bert-base", "Devlin et al. 2019: 12 layers, 768, learned positions, GELU, pooler", 30522, bert(768, 12, 12),
       kFineTuning, kBertDiffers},
      {"bert-tiny", "Turc et al. 2019: 2 layers, 128", 30522, bert(128, 2, 2), kFineTuning, kBertDiffers},
      {"gpt2-124m", "Radford et al. 2019, the smallest GPT-2: 12 layers, 768, context 1024", 50257,
       R"({"architecture": "decoder_lm", "d_model": 768, "heads": 12, "layers": 12, "d_ff": 3072,
                    "activation_dropout": 0, "positions": "learned", "activation": "gelu_tanh", "scale_embeddings": false,
                    "initialization": "normal_scaled", "share_projection": true, "projection_bias": false,
                    "context_length": 1024})",
       kGpt,
       "The paper names no optimizer, schedule or steps: these are those of nanoGPT and GPT-3. train.steps and "
       "train.batch_tokens (512 texts of 1,024 tokens in the paper) are to be set"},
      {"gpt-char", "a GPT over characters that a CPU trains in minutes: 4 layers, 128, context 64, as in nanoGPT", 65,
       R"({"architecture": "decoder_lm", "d_model": 128, "heads": 4, "layers": 4, "d_ff": 512,
                    "dropout": 0, "attention_dropout": 0, "activation_dropout": 0,
                    "attention": {"kind": "multi_head", "bias": "none"}, "feed_forward_bias": false,
                    "positions": "learned", "activation": "gelu", "scale_embeddings": false,
                    "initialization": "normal_scaled", "share_projection": true, "projection_bias": false,
                    "context_length": 64})",
       kGptCharacters, "The learning rate is 4e-3, nanoGPT's is 1e-3. Norms have biases, nanoGPT's have none"},
      {"llama-style-small", "RMSNorm, SwiGLU, rotary positions, no biases (Touvron et al. 2023): 6 layers, 288", 32000,
       R"({"architecture": "decoder_lm", "d_model": 288, "heads": 6, "layers": 6, "d_ff": 768,
                    "dropout": 0, "attention_dropout": 0, "activation_dropout": 0,
                    "attention": {"kind": "multi_head", "bias": "none"}, "feed_forward_bias": false,
                    "positions": {"kind": "rotary", "pairing": "interleaved"}, "norm_form": "rms",
                    "activation": "swiglu", "scale_embeddings": false, "initialization": "normal_scaled",
                    "share_projection": true, "projection_bias": false, "context_length": 256})",
       kGpt,
       "Sizes of llama2.c's stories15M; LLaMA itself has a learning rate of 3e-4 and batches of 4 million tokens. "
       "train.steps and train.batch_tokens are to be set"},
  };
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = make_presets();
  return all;
}

std::string preset_names() {
  std::string names;
  for (const Preset& preset : presets()) names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return names;
}

const Preset& find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset;
    names.emplace_back(preset.name);
  }
  const std::string near = nearest_name(name, names);
  if (!near.empty()) fail<ConfigError>("unknown preset \"{}\", did you mean \"{}\"?", name, near);
  fail<ConfigError>("unknown preset \"{}\", there are {}", name, preset_names());
}

TransformerConfig preset_model(const Preset& preset) {
  TransformerConfig config;
  read_fields(Json::parse(preset.model), config, std::string("preset ") + preset.name);
  config.source_vocab = config.target_vocab = config.vocab = preset.vocab;
  if (config.architecture == Architecture::encoder_classifier) config.labels = {"0", "1"};
  return config;
}

}  // namespace attune
