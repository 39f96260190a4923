#pragma once
// What the encoder-decoder families that came from fairseq and Marian have in common: their names, and most of their
// configuration.

#include <array>
#include <string>
#include <vector>

#include "attune/hub/family.h"

namespace attune {

/// The sizes, the activation and the vocabularies of BART's config.json, and what is shared. The projection is the
/// embedding where the files have no "lm_head.weight", whatever config.json says. Source and target share one embedding
/// unless "tie_word_embeddings" is false and the files have one for each. Norms and positions stay as they are in
/// without_dropout().
TransformerConfig bart_sizes(const HubFiles& files);

/// The names of BART, with rows for positions, norms of embeddings and final norms that a model may not have.
NameTable bart_names(const TransformerConfig& config, const HubFiles& files);

/// Refuses "is_causal", whatever its value: in transformers it holds for both stacks.
void refuse_is_causal(const HubConfig& config);

/// Adds the names of an attention's projections. `projections`: the family's, of queries, keys, values, output.
void add_attention(NameTable& table, const std::string& ours, const std::string& theirs,
                   const std::array<const char*, 4>& projections);

}  // namespace attune
