#pragma once
// Configurations of well-known published models, by name.

#include <string>
#include <string_view>
#include <vector>

#include "attune/models/config.h"

namespace [[gnu::visibility("default")]] attune {

struct Preset {
  const char* name;
  const char* description;  // one line, with its source
  int64_t vocab;            // of the published model; training uses that of the tokenizer
  // As JSON, the keys that differ from the defaults:
  std::string model;     // of [model], without vocabularies
  std::string training;  // sections [optimizer], [schedule], [train] and [generation]
  std::string differs;   // from the publication's recipe, in a sentence
};

/// All presets, in the order in which they are listed for users.
const std::vector<Preset>& presets();

/// "transformer-base, transformer-big, ..."
std::string preset_names();

/// Returns the preset of this name. Throws ConfigError naming the nearest preset, or all if none is near.
const Preset& find_preset(std::string_view name);

/// The configuration of the preset's model with its published vocabulary; a classifier gets two labels.
TransformerConfig preset_model(const Preset& preset);

}  // namespace attune
