#pragma once
// What the configurations of several families have in common when they are written: the other direction of translate.h.
// Every function takes a configuration in full_form().

#include <string>
#include <string_view>

#include "attune/hub/family.h"

namespace attune {

/// The attention of every layer (of an encoder-decoder: of the encoder). Throws ConfigError for latent attention.
const MultiHead& multi_head_of(const TransformerConfig& c);

/// The fields that set_sizes() reads.
Json sizes_of(const TransformerConfig& c);

/// "layer_types" of transformers: "full_attention" or "sliding_attention" for each layer.
Json layer_types_of(const TransformerConfig& c);

/// The size of the window of every layer; null for full attention.
Json window_of(const MultiHead& attention);

/// The number of rows of a learned table of positions. Throws ConfigError for other positions.
int64_t learned_positions_of(const TransformerConfig& c);

/// The name that activation_of() reads. Null where transformers has no such name; `gated`: of a gated unit.
Json activation_name(FeedForwardActivation activation, bool gated = false);
Json activation_name(Activation activation);

/// An object of "rope_parameters". Throws ConfigError where the positions are not rotary.
Json rope_parameters_of(const PositionKind& positions, int64_t head_dim);

/// Sets "rope_parameters", "rope_theta", which versions of transformers before 5 read, and "max_position_embeddings".
void put_rotary(Json& json, const TransformerConfig& c, int64_t head_dim);

/// The fields that bert_encoder() reads.
Json bert_fields(const TransformerConfig& c);

/// The fields that bart_sizes() reads. Throws ConfigError where embeddings are shared in a way that BART has not.
Json bart_fields(const TransformerConfig& c);

}  // namespace attune
