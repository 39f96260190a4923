#include "attune/hub/hub_generation.h"

#include <algorithm>
#include <array>

#include "attune/base/file.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/model_folder.h"

namespace attune {
namespace {

// What would change an output and is not known here.
constexpr std::array kNotSupported = {"force_words_ids", "constraints",        "forced_decoder_ids",
                                      "sequence_bias",   "penalty_alpha",      "exponential_decay_length_penalty",
                                      "stop_strings",    "watermarking_config"};

// An id, or -1.
int64_t token_of(const HubConfig& hub, std::string_view field) {
  const std::vector<int64_t> ids = hub.integers(field);
  if (ids.size() > 1) hub.refuse(field, "several tokens are not supported");
  return ids.empty() ? -1 : ids.front();
}

EarlyStopping early_stopping_of(const HubConfig& hub) {
  if (!hub.has_text("early_stopping"))
    return hub.flag("early_stopping", false) ? EarlyStopping::first : EarlyStopping::bound;
  if (hub.text("early_stopping") != "never") hub.refuse("early_stopping", "needs true, false or \"never\"");
  return EarlyStopping::bound;
}

// transformers counts the start token too.
void set_lengths(GenerationConfig& g, const HubConfig& hub) {
  const int64_t longest =
      hub.has("max_new_tokens") ? hub.integer("max_new_tokens") : hub.integer("max_length", g.max_length + 1) - 1;
  const int64_t most = std::min(GenerationConfig::kMostLength, GenerationConfig::kMostWork / g.beam_size);
  g.max_length = std::clamp<int64_t>(longest, 1, most);
  g.max_length_ratio = 0;
  const int64_t least = hub.has("min_new_tokens") ? hub.integer("min_new_tokens") : hub.integer("min_length", 0) - 1;
  g.min_length = std::clamp<int64_t>(least, 0, g.max_length - 1);
}

// "bad_words_ids" is a list of phrases; a phrase that is an end is left out, as by transformers.
template <class Config>
void add_bad_words(Config& g, const HubConfig& hub) {
  for (const std::vector<int64_t>& phrase : hub.integer_lists("bad_words_ids")) {
    if (phrase.size() != 1) hub.refuse("bad_words_ids", "phrases of several tokens are not supported");
    if (std::ranges::find(g.eos_tokens, phrase[0]) == g.eos_tokens.end()) g.suppressed_tokens.push_back(phrase[0]);
  }
}

void set_tokens(GenerationConfig& g, const HubConfig& hub, const HubConfig& config) {
  const auto either = [&](std::string_view field) -> const HubConfig& { return hub.has(field) ? hub : config; };
  g.special_tokens = true;
  g.start_token = token_of(either("decoder_start_token_id"), "decoder_start_token_id");
  if (g.start_token < 0) g.start_token = token_of(either("bos_token_id"), "bos_token_id");
  if (g.start_token < 0) hub.refuse("decoder_start_token_id", "the decoder needs a token to begin with");
  g.eos_tokens = either("eos_token_id").integers("eos_token_id");
  if (g.eos_tokens.empty()) hub.refuse("eos_token_id", "outputs need a token that ends them");
  g.forced_first_token = token_of(hub, "forced_bos_token_id");
  g.forced_last_token = token_of(hub, "forced_eos_token_id");
  g.suppressed_tokens = hub.integers("suppress_tokens");
  g.suppressed_at_begin = hub.integers("begin_suppress_tokens");
}

// generation_config.json, or, in a folder of before there was such a file, config.json.
HubConfig settings_of(const std::filesystem::path& folder, const HubConfig& config) {
  const std::filesystem::path own = folder / kGenerationConfigFile;
  return is_there(own) ? HubConfig(read_json_file(own), own.string()) : config;
}

void refuse_unknown_searches(const HubConfig& hub) {
  for (const char* field : kNotSupported)
    if (hub.has(field)) hub.refuse(field, "is not supported");
  hub.require("encoder_no_repeat_ngram_size", 0);
  for (const char* field : {"encoder_repetition_penalty", "typical_p", "guidance_scale"}) hub.require(field, 1.0);
  for (const char* field : {"epsilon_cutoff", "eta_cutoff"}) hub.require(field, 0.0);
}

void read(GenerationConfig& g, const HubConfig& hub, const HubConfig& config) {
  g.beam_size = hub.integer("num_beams", 1);
  if (g.beam_size < 1 || g.beam_size > GenerationConfig::kMostBeamSize)
    hub.refuse("num_beams", "needs a number from 1 to " + std::to_string(GenerationConfig::kMostBeamSize));
  g.beam_groups = hub.integer("num_beam_groups", 1);
  g.diversity_penalty = hub.number("diversity_penalty", 0);
  g.length_penalty = hub.number("length_penalty", 1);
  g.length_normalization = LengthNormalization::power;
  g.early_stopping = early_stopping_of(hub);
  g.no_repeat_ngram_size = hub.integer("no_repeat_ngram_size", 0);
  g.repetition_penalty = hub.number("repetition_penalty", 1);
  g.penalize_log_probabilities = true;
  g.rank_unfinished = true;
  set_lengths(g, hub);
  set_tokens(g, hub, config);
  add_bad_words(g, hub);
}

void read(SamplingConfig& s, const HubConfig& hub, const HubConfig& config) {
  hub.require("num_beams", 1);
  if (hub.integer("min_length", 0) > 0)
    hub.refuse("min_length", "counts the prompt too, which is not supported; min_new_tokens is");
  const bool draws = hub.flag("do_sample", false);
  s.temperature = draws ? hub.number("temperature", 1) : 0;
  if (draws) {
    s.top_k = hub.integer("top_k", 50);
    s.top_p = hub.number("top_p", 1);
    s.min_p = hub.number("min_p", 0);
  }
  s.repetition_penalty = hub.number("repetition_penalty", 1);
  if (hub.has("max_new_tokens")) s.max_tokens = hub.integer("max_new_tokens");
  s.min_tokens = hub.integer("min_new_tokens", 0);
  s.no_repeat_ngram_size = hub.integer("no_repeat_ngram_size", 0);
  s.special_tokens = true;
  s.eos_tokens = (hub.has("eos_token_id") ? hub : config).integers("eos_token_id");
  s.suppressed_tokens = hub.integers("suppress_tokens");
  s.suppressed_at_begin = hub.integers("begin_suppress_tokens");
  s.forced_first_token = token_of(hub, "forced_bos_token_id");
  s.forced_last_token = token_of(hub, "forced_eos_token_id");
  add_bad_words(s, hub);
}

template <class Settings>
Settings read_settings(const std::filesystem::path& folder, const HubConfig& config) {
  const HubConfig hub = settings_of(folder, config);
  refuse_unknown_searches(hub);
  Settings settings;
  read(settings, hub, config);
  try {
    settings.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", hub.where(), error.what());
  }
  return settings;
}

}  // namespace

GenerationConfig read_hub_generation(const std::filesystem::path& folder, const HubConfig& config) {
  return read_settings<GenerationConfig>(folder, config);
}

SamplingConfig read_hub_sampling(const std::filesystem::path& folder, const HubConfig& config) {
  return read_settings<SamplingConfig>(folder, config);
}

}  // namespace attune
