#pragma once
// What the configurations of several families have in common.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/hub/family.h"

namespace attune {

/// More layers than any model has: a bound of lists that are made before validate() looks.
constexpr int64_t kMostHubLayers = 4096;

/// Our defaults without dropout (which acts in training alone) and without scaled embeddings.
TransformerConfig without_dropout(Architecture architecture);

/// The same for a language model with a vocabulary of "vocab_size". Its projection is the embedding where the files
/// have no tensor "HEAD.weight", whatever config.json says. No class has a bias there.
TransformerConfig language_model(const HubFiles& files, std::string_view head);

/// Sets the sizes that config.json calls hidden_size, num_attention_heads, num_hidden_layers and intermediate_size.
void set_sizes(TransformerConfig& c, const HubConfig& config);

/// "num_key_value_heads"; all heads where it is null, `fallback` where it is missing.
int64_t key_heads_of(const TransformerConfig& c, const HubConfig& config, int64_t fallback);

/// "head_dim", or d_model / heads.
int64_t head_dim_of(const TransformerConfig& c, const HubConfig& config);

/// An encoder: without dropout, with the vocabulary of "vocab_size" and, of a classifier, the labels of "id2label" or
/// "num_labels". Its other settings are those of without_dropout().
TransformerConfig encoder_model(const HubFiles& files);

/// The transform in front of the projection of masked tokens, with its norm. The projection is the embedding where the
/// files have no "HEAD.weight". Does nothing for other architectures.
void set_masked_lm_head(TransformerConfig& c, const HubFiles& files, std::string_view head, Activation activation);

/// The width of the tables of embeddings of a family that projects them where it is not d_model.
void set_embedding_dim(TransformerConfig& c, int64_t width);

/// The class of layer i is taken from "layer_types", else from is_local(i). Local layers have the window of
/// "sliding_window" and the positions of all layers, until the caller sets others.
void set_layer_attention(TransformerConfig& c, const HubConfig& config,
                         const std::function<bool(int64_t layer)>& is_local);

/// The activation that config.json names in `field`; `fallback` if it names none. `gated`: of a gated unit.
FeedForwardActivation activation_of(const HubConfig& config, std::string_view field, const std::string& fallback,
                                    bool gated = false);
/// The same for a head.
Activation head_activation_of(const HubConfig& config, std::string_view field, const std::string& fallback);

/// Experts as config.json has them in "num_experts_per_tok" and "moe_intermediate_size" (without it: as wide as all
/// layers), without a loss for their balance.
Experts experts_of(const HubConfig& config, int64_t experts);

/// The rows of a table for layers with experts. `ours` and `theirs` are the names of the feed-forward network,
/// `gate_up` those of the two halves of a gated unit, and `down` that of the projection after it.
NameTable expert_rows(const std::string& ours, const std::string& theirs, const std::vector<std::string>& gate_up,
                      const std::string& down);

/// What rotary positions need beside config.json.
struct RotaryFields {
  int64_t head_dim = 0;
  std::optional<int64_t> context_length = {};  // where config.json has none; else it has to have one
  std::string_view layer_type = "";
  std::string_view base_field = "rope_theta";   // what the family calls the base beside the table
  double base = 10000;                          // where config.json has none
  std::optional<int64_t> original_length = {};  // where config.json has none beside the table; else the table's
  bool any_length = false;                      // refuses what gives other angles to texts of other lengths
  bool partial = false;       // whether a share of a head is rotated: transformers asks for it in a few families alone
  double partial_factor = 1;  // this share, where config.json has none
  std::string_view partial_field = "partial_rotary_factor";  // what the family calls it beside the table
};

/// The object with the fields of the positions: "rope_parameters" (transformers 5), or "rope_scaling" (before), which
/// goes first where there are both. With a `layer_type` it is the object of "rope_parameters" for these layers; fields
/// of "rope_scaling" then replace those of the same name. "rope_theta" may be beside it.
HubConfig rotary_table_of(const HubConfig& config, std::string_view layer_type = "");

/// The rotary positions of that object.
RotaryOptions rotary_of(const HubConfig& config, const RotaryFields& fields);

/// Sets these positions, and context_length to "max_position_embeddings". `dynamic` scaling changes nothing up to that
/// length, and longer texts are not read. `longrope` has other factors for texts that are longer than the trained
/// length: context_length is that length.
void set_rotary(TransformerConfig& c, const HubConfig& config, const RotaryFields& fields);
/// Lowers context_length to the trained length if the positions of any layers are `longrope`.
void limit_context(TransformerConfig& c);

/// The first of these tensors that the files have, else the first one: files of different ages have a shared tensor
/// under one or several of its names.
std::string first_stored(const HubFiles& files, const std::vector<std::string>& tensors);

/// The name of a projection's bias that the files may have twice: `own` holds where the projection has a matrix of its
/// own, and transformers writes `shared` where it has not.
std::string projection_bias_name(const TransformerConfig& c, const HubFiles& files, const std::string& own,
                                 const std::string& shared);

/// Takes as many stored rows from `first` on as the parameter has.
Transform part_of_rows(int64_t first, bool transposed = false);

}  // namespace attune
