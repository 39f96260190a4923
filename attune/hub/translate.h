#pragma once
// What the configurations of several families have in common.

#include <string_view>

#include "attune/hub/family.h"

namespace attune {

/// Our defaults without dropout (which acts in training alone) and without scaled embeddings.
TransformerConfig without_dropout(Architecture architecture);

/// The same for a language model with a vocabulary of "vocab_size". Its projection is the embedding where the files
/// have no tensor "HEAD.weight", whatever config.json says, and has a bias where they have "HEAD.bias".
TransformerConfig language_model(const HubFiles& files, std::string_view head);

/// The activation that config.json names in `field`; `fallback` if it names none. `gated`: of a gated unit.
FeedForwardActivation activation_of(const HubConfig& config, std::string_view field, const std::string& fallback,
                                    bool gated = false);

/// Sets the rotary positions from "rope_parameters" (transformers 5) or from "rope_theta" and "rope_scaling" (before),
/// and context_length to "max_position_embeddings". `dynamic` scaling changes nothing up to that length, and no more is
/// read.
void set_rotary(TransformerConfig& c, const HubConfig& config, int64_t head_dim);

/// The rotary positions alone; where "rope_parameters" has an object for each type of layer, those of `layer_type`.
struct RotaryFields {
  int64_t head_dim = 0;
  std::string_view layer_type = "";
  double base = 10000;        // where config.json has none
  double partial_factor = 1;  // the share of a head that is rotated, where config.json has none
};
RotaryOptions rotary_of(const HubConfig& config, const RotaryFields& fields);

/// Of stored rows those from `first` on, as many as the parameter has.
Transform part_of_rows(int64_t first, bool transposed = false);

}  // namespace attune
