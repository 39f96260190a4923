#pragma once

#include <span>
#include <string>

#include "attune/hub/family.h"

namespace attune {

Family bart_family();  // and mBART
Family deepseek_family();
Family gpt2_family();
Family m2m100_family();  // and NLLB
Family marian_family();
Family t5_family();  // and mT5

/// The family of config.json's model_type. Throws ConfigError for one that is not known, and for a mixture of experts.
const Family& family_of(const HubConfig& config);

/// What config.json's `architectures` names, as a class of the family. Throws ConfigError.
HubClass class_of(const HubConfig& config, const Family& family);

}  // namespace attune
