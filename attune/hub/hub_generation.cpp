#include "attune/hub/hub_generation.h"

#include <algorithm>
#include <array>
#include <set>

#include "attune/base/file.h"
#include "attune/base/with_prefix.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/model_folder.h"

namespace attune {
namespace {

// What would change an output and is not known here.
constexpr std::array kNotSupported = {"force_words_ids",
                                      "constraints",
                                      "forced_decoder_ids",
                                      "sequence_bias",
                                      "penalty_alpha",
                                      "exponential_decay_length_penalty",
                                      "stop_strings",
                                      "watermarking_config",
                                      "top_h",
                                      "dola_layers",
                                      "max_time"};

// An id, or -1.
int64_t token_of(const HubConfig& hub, std::string_view field) {
  const std::vector<int64_t> ids = hub.integers(field);
  if (ids.size() > 1) hub.refuse(field, "several tokens are not supported");
  return ids.empty() ? -1 : ids.front();
}

EarlyStopping early_stopping_of(const HubConfig& hub) {
  if (!hub.has_text("early_stopping"))
    return hub.flag("early_stopping", false) ? EarlyStopping::first : EarlyStopping::heuristic;
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
  g.min_length = std::clamp<int64_t>(least, 0, g.max_length);
}

// "bad_words_ids" is a list of phrases; a phrase that is an end is left out, as by transformers
// (NoBadWordsLogitsProcessor), and so is one that was there before.
template <class Config>
void add_bad_words(Config& g, const HubConfig& hub) {
  std::set<std::vector<int64_t>> known;
  for (const std::vector<int64_t>& phrase : hub.integer_lists("bad_words_ids")) {
    if (phrase.empty()) hub.refuse("bad_words_ids", "a phrase has no tokens");
    if (!known.insert(phrase).second) continue;
    if (phrase.size() > 1)
      g.suppressed_phrases.push_back(phrase);
    else if (std::ranges::find(g.eos_tokens, phrase[0]) == g.eos_tokens.end())
      g.suppressed_tokens.push_back(phrase[0]);
  }
}

// Of config.json, and of a file that was made of it, the flag that the first folders of BART have goes first, as in
// transformers.
int64_t forced_first_of(const HubConfig& hub, const HubConfig& config) {
  const bool of_config = hub.where() == config.where() || hub.flag("_from_model_config", false);
  const bool is_bos = of_config && hub.flag("force_bos_token_to_be_generated", false);
  return token_of(hub, is_bos ? "bos_token_id" : "forced_bos_token_id");
}

void set_tokens(GenerationConfig& g, const HubConfig& hub, const HubConfig& config) {
  const auto either = [&](std::string_view field) -> const HubConfig& { return hub.has(field) ? hub : config; };
  g.special_tokens = true;
  g.start_token = token_of(either("decoder_start_token_id"), "decoder_start_token_id");
  if (g.start_token < 0) g.start_token = token_of(either("bos_token_id"), "bos_token_id");
  if (g.start_token < 0) hub.refuse("decoder_start_token_id", "the decoder needs a token to begin with");
  g.eos_tokens = either("eos_token_id").integers("eos_token_id");
  if (g.eos_tokens.empty()) hub.refuse("eos_token_id", "outputs need a token that ends them");
  g.forced_first_token = forced_first_of(hub, config);
  g.forced_last_token = token_of(hub, "forced_eos_token_id");
  g.suppressed_tokens = hub.integers("suppress_tokens");
  g.suppressed_at_begin = hub.integers("begin_suppress_tokens");
}

// generation_config.json; in folders that are older than this file, config.json.
HubConfig settings_of(const std::filesystem::path& folder, const HubConfig& config) {
  const std::filesystem::path own = folder / kGenerationConfigFile;
  return is_there(own) ? HubConfig(read_json_file(own), own.string()) : config;
}

void refuse_unknown_searches(const HubConfig& hub) {
  for (const char* field : kNotSupported)
    if (hub.has(field)) hub.refuse(field, "is not supported");
  hub.require("encoder_no_repeat_ngram_size", 0);
  hub.require("token_healing", false);
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
  g.renormalize_logits = hub.flag("renormalize_logits", false);
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
  if (hub.has("max_new_tokens")) {
    s.max_tokens = hub.integer("max_new_tokens");
  } else if (hub.has("max_length")) {
    s.max_tokens = 0;
    s.max_length = hub.integer("max_length");
  }
  s.min_tokens = hub.integer("min_new_tokens", 0);
  s.no_repeat_ngram_size = hub.integer("no_repeat_ngram_size", 0);
  s.special_tokens = true;
  s.eos_tokens = (hub.has("eos_token_id") ? hub : config).integers("eos_token_id");
  s.suppressed_tokens = hub.integers("suppress_tokens");
  s.suppressed_at_begin = hub.integers("begin_suppress_tokens");
  s.forced_first_token = forced_first_of(hub, config);
  s.forced_last_token = token_of(hub, "forced_eos_token_id");
  add_bad_words(s, hub);
}

template <class Settings>
Settings read_settings(const std::filesystem::path& folder, const HubConfig& config) {
  const HubConfig hub = settings_of(folder, config);
  refuse_unknown_searches(hub);
  Settings settings;
  read(settings, hub, config);
  with_prefix(hub.where() + ": ", [&] { settings.validate(); });
  return settings;
}

Json id_of(int64_t token) {
  return token < 0 ? Json(nullptr) : Json(token);
}

// A phrase of one token is a suppressed token: transformers forgets one in "bad_words_ids" that is an end. Without
// `special_tokens` texts have no pad, no bos and, of a language model, no unk.
template <class Config>
Json token_fields(const Config& g, const SpecialIds& special, const std::vector<int32_t>& never) {
  std::vector<int64_t> eos = g.eos_tokens, suppressed = g.suppressed_tokens;
  if (eos.empty() && special.eos >= 0) eos.push_back(special.eos);
  std::vector<std::vector<int64_t>> phrases;
  for (const std::vector<int64_t>& phrase : g.suppressed_phrases) {
    if (phrase.size() > 1)
      phrases.push_back(phrase);
    else if (std::ranges::find(suppressed, phrase.front()) == suppressed.end())
      suppressed.push_back(phrase.front());
  }
  for (const int32_t token : never)
    if (!g.special_tokens && token >= 0 && std::ranges::find(eos, token) == eos.end()) suppressed.push_back(token);
  Json json = {{"bos_token_id", id_of(special.bos)}, {"pad_token_id", id_of(special.pad)}};
  if (!eos.empty()) json["eos_token_id"] = eos.size() == 1 ? Json(eos.front()) : Json(eos);
  if (!suppressed.empty()) json["suppress_tokens"] = suppressed;
  if (!g.suppressed_at_begin.empty()) json["begin_suppress_tokens"] = g.suppressed_at_begin;
  if (!phrases.empty()) json["bad_words_ids"] = phrases;
  if (g.forced_first_token >= 0) json["forced_bos_token_id"] = g.forced_first_token;
  if (g.forced_last_token >= 0) json["forced_eos_token_id"] = g.forced_last_token;
  if (g.no_repeat_ngram_size > 0) json["no_repeat_ngram_size"] = g.no_repeat_ngram_size;
  if (g.repetition_penalty != 1) json["repetition_penalty"] = g.repetition_penalty;
  return json;
}

}  // namespace

Json hub_generation_of(const GenerationConfig& settings, const SpecialIds& special,
                       std::vector<std::string>& left_out) {
  const GenerationConfig& g = settings;
  Json json = token_fields(g, special, {special.pad, special.bos});
  json["decoder_start_token_id"] = id_of(g.start_token >= 0 ? g.start_token : special.bos);
  json["num_beams"] = g.beam_size;
  json["max_new_tokens"] = g.max_length;
  if (g.min_length > 0) json["min_new_tokens"] = g.min_length;
  if (g.renormalize_logits) json["renormalize_logits"] = true;
  if (g.beam_size > 1) {
    const bool bound = g.early_stopping == EarlyStopping::bound;
    json["early_stopping"] = bound ? Json("never") : Json(g.early_stopping != EarlyStopping::heuristic);
  }
  if (g.beam_groups > 1) json.update({{"num_beam_groups", g.beam_groups}, {"diversity_penalty", g.diversity_penalty}});
  const bool power = g.length_normalization == LengthNormalization::power || g.length_penalty == 0;
  if (power) json["length_penalty"] = g.length_penalty;
  const auto leave_out = [&](bool is_set, const char* field) {
    if (is_set) left_out.push_back(std::string("generation: ") + field + " has no equivalent");
  };
  leave_out(!power, "length_normalization = \"wu\" (transformers divides by powers of the length)");
  leave_out(g.max_length_ratio > 0, "max_length_ratio");
  leave_out(g.coverage_penalty != 0, "coverage_penalty");
  leave_out(g.early_stopping == EarlyStopping::patience, "early_stopping = \"patience\"");
  return json;
}

Json hub_sampling_of(const SamplingConfig& settings, const SpecialIds& special, std::vector<std::string>& left_out) {
  const SamplingConfig& s = settings;
  Json json = token_fields(s, special, {special.pad, special.unk, special.bos});
  if (s.max_tokens > 0)
    json["max_new_tokens"] = s.max_tokens;
  else
    json["max_length"] = s.max_length;
  if (s.min_tokens > 0) json["min_new_tokens"] = s.min_tokens;
  json["do_sample"] = s.temperature > 0;
  if (s.temperature > 0)
    json.update({{"temperature", s.temperature}, {"top_k", s.top_k}, {"top_p", s.top_p}, {"min_p", s.min_p}});
  if (s.slide) left_out.push_back("generation: slide has no equivalent");
  return json;
}

GenerationConfig read_hub_generation(const std::filesystem::path& folder, const HubConfig& config) {
  return read_settings<GenerationConfig>(folder, config);
}

SamplingConfig read_hub_sampling(const std::filesystem::path& folder, const HubConfig& config) {
  return read_settings<SamplingConfig>(folder, config);
}

}  // namespace attune
