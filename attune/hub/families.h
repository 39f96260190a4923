#pragma once

#include <span>
#include <string>
#include <vector>

#include "attune/hub/family.h"

namespace attune {

Family albert_family();
Family bart_family();  // and mBART
Family bert_family();
Family deepseek_family();
Family distilbert_family();
Family electra_family();
Family gemma_family();  // 2 and 3
Family gpt2_family();
Family gpt_neox_family();
Family llama_family();   // Mistral, Qwen2 and Qwen3 too
Family m2m100_family();  // and NLLB
Family marian_family();
Family modernbert_family();
Family opt_family();
Family phi3_family();
Family roberta_family();  // and XLM-R
Family starcoder2_family();
Family t5_family();  // and mT5

/// The order in which they are tried when a model is written.
const std::vector<Family>& all_families();

/// The family of config.json's model_type. Throws ConfigError for one that is not known, and for a mixture of experts.
const Family& family_of(const HubConfig& config);

/// "tie_word_embeddings" of config.json, which has the default of its model_type where it is missing.
bool is_tied(const HubConfig& config, const Family& family);

/// What config.json's `architectures` names, as a class of the family. Throws ConfigError.
HubClass class_of(const HubConfig& config, const Family& family);

}  // namespace attune
