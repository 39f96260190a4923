#include "attune/hub/families.h"

#include <algorithm>
#include <array>

namespace attune {
namespace {

// Mixtures of experts that are not read, for a clearer error.
constexpr std::array kMixturesOfExperts = {"qwen2_moe", "nllb-moe", "switch_transformers", "phimoe", "olmoe",
                                           "gpt_oss",   "dbrx",     "granitemoe",          "jamba",  "glm4_moe"};

}  // namespace

const std::vector<Family>& all_families() {
  static const std::vector<Family> all = {bert_family(),       gpt2_family(),   llama_family(),    marian_family(),
                                          bart_family(),       t5_family(),     deepseek_family(), opt_family(),
                                          gemma_family(),      phi3_family(),   gpt_neox_family(), starcoder2_family(),
                                          distilbert_family(), albert_family(), roberta_family(),  electra_family(),
                                          modernbert_family(), m2m100_family()};
  return all;
}

const Family& family_of(const HubConfig& config) {
  const std::string type = config.text("model_type");
  if (std::ranges::find(kMixturesOfExperts, type) != kMixturesOfExperts.end())
    config.refuse("model_type", "mixtures of experts of this family are not supported");
  std::string known;
  for (const Family& family : all_families()) {
    for (const std::string_view name : family.model_types) {
      if (name == type) return family;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
  }
  config.refuse("model_type", "is not supported, needs one of " + known);
}

bool is_tied(const HubConfig& config, const Family& family) {
  const bool untied = std::ranges::find(family.untied, config.text("model_type")) != family.untied.end();
  return config.flag("tie_word_embeddings", !untied);
}

HubClass class_of(const HubConfig& config, const Family& family) {
  const std::vector<std::string> names = config.texts("architectures");
  if (names.empty()) return family.classes.front();
  std::string known;
  for (const HubClass& c : family.classes) {
    if (c.name == names.front()) {
      if (c.is_base && !is_tied(config, family))
        config.refuse("architectures", "has no projection to the vocabulary, and tie_word_embeddings is not true");
      return c;
    }
    known += (known.empty() ? "" : ", ") + std::string(c.name);
  }
  config.refuse("architectures", "is not supported, needs one of " + known);
}

}  // namespace attune
