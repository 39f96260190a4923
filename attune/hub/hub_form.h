#pragma once
// The form that a model of ours has on the Hugging Face hub: a class of transformers that computes the same.

#include <string>
#include <vector>

#include "attune/hub/family.h"
#include "attune/text/tokenizer.h"

namespace attune {

struct HubForm {
  const Family* family;
  HubClass hub_class;
  Json config;              // config.json, but for what depends on the tensors' type
  TransformerConfig model;  // of the class: where it differs from ours, the difference can be bridged, see equivalent.h
  NameTable names;          // of its parameters
};

/// The classes that are written: "albert, bart, ...".
std::string written_model_types();

/// The tokens that config.json names; where it names none, those of `otherwise`.
SpecialIds special_ids_of(const HubConfig& config, SpecialIds otherwise);

/// Finds the first class with a model that has the outputs of `config`. A class without differences goes before one
/// whose differences can be bridged. `parameters` are the names of the model's parameters. `model_type`: only this one;
/// "": any. Throws ConfigError that names the fields without an equivalent and what the nearest class has there.
HubForm hub_form_of(const TransformerConfig& config, const std::vector<std::string>& parameters,
                    const SpecialIds& special, const std::string& model_type = "");

}  // namespace attune
