#pragma once
// Configurations that the literature knows by name.

#include <string>
#include <string_view>
#include <vector>

#include "attune/models/config.h"

namespace [[gnu::visibility("default")]] attune {

struct Preset {
  const char* name;
  const char* description;  // one line, with its source
  int64_t vocab;            // of the published model; training takes the tokenizer's
  // As JSON, the keys that differ from the defaults:
  std::string model;     // of [model], without vocabularies
  std::string training;  // sections [optimizer], [schedule] and [train]
};

/// All of them, in the order in which people want to read them.
const std::vector<Preset>& presets();

/// "transformer-base, transformer-big, ..."
std::string preset_names();

/// Throws ConfigError naming the nearest preset, or all where none is near.
const Preset& find_preset(std::string_view name);

/// The preset's model with its published vocabulary; a classifier has two labels.
TransformerConfig model_of(const Preset& preset);

}  // namespace attune
