#pragma once
// A family of models of the Hugging Face hub is a table: its configuration in terms of ours, and where our parameters
// are in its files. To add a family, write a file like families/gpt2.cpp and add it to families.cpp
// (docs/hugging-face.md).

#include <string>
#include <string_view>
#include <vector>

#include "attune/hub/hub_config.h"
#include "attune/hub/hub_tensors.h"
#include "attune/hub/name_table.h"
#include "attune/models/config.h"

namespace attune {

/// A class of transformers, as `architectures` of config.json names it.
struct HubClass {
  std::string_view name;  // "GPT2LMHeadModel"
  Architecture architecture;
  std::string_view model_type;  // of the folders that are written with it; empty: none are
  /// Has no projection to the vocabulary: the embedding is the projection where the two are tied, and else there is
  /// none.
  bool is_base = false;
};

/// What a family's functions read.
struct HubFiles {
  const HubConfig& config;
  const TensorNames& tensors;
  Architecture architecture;
  std::string_view class_name;
};

/// What a family's config.json is written for.
struct DescribedModel {
  const TransformerConfig& config;  // in full_form()
  std::string_view model_type;
  int64_t pad;  // the tokenizer's id
};

struct Family {
  std::vector<std::string_view> model_types;
  std::vector<HubClass> classes;  // the first one holds where config.json names none
  std::string prefix;             // of the base model's tensors
  /// Returns our configuration; refuses what it does not know. The caller validates the result.
  TransformerConfig (*translate)(const HubFiles& files);
  /// The names for reading and writing. Where the files have none of a tensor's names, the table has the one to write.
  NameTable (*names)(const TransformerConfig& config, const HubFiles& files);
  /// The other direction of translate(): fields of config.json for the family's model that is nearest to ours. What
  /// translate() makes of them tells whether it is the same. Throws ConfigError naming the field where no model is
  /// near.
  Json (*describe)(const DescribedModel& model);
  std::vector<std::string> ignored;  // tensors that are no part of the model, see find_parameters()
  /// Further ones that depend on the configuration; may be null.
  std::vector<std::string> (*ignored_too)(const HubFiles& files) = nullptr;
  /// The model types whose "tie_word_embeddings" is false where config.json has none, as in transformers; that of the
  /// others is true.
  std::vector<std::string_view> untied = {};
};

}  // namespace attune
