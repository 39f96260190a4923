#pragma once
// Models that compute the same although their configurations differ.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/base/json.h"
#include "attune/models/config.h"
#include "attune/nn/module.h"

namespace attune {

/// The same model with every default written out (head_dim, kv_heads, ...), and with the defaults of what no output
/// depends on: dropout, initialisation, what balances experts in training, guided alignment.
TransformerConfig full_form(const TransformerConfig& config);

/// A field that two configurations have with different values: "attention.pattern".
struct FieldDifference {
  std::string field;
  Json ours, theirs;
};

/// Where the full forms of two models differ. Numbers that differ by rounding alone count as equal.
std::vector<FieldDifference> differences(const TransformerConfig& ours, const TransformerConfig& theirs);

/// Whether a model of the other configuration can have the same outputs, with other parameters:
///   - it has biases or token types that ours has not: they are zeros
///   - it pairs the dimensions of rotary positions in another way: rows of queries and keys change places
bool can_be_bridged(const FieldDifference& difference, const TransformerConfig& ours);

/// Returns a model of `theirs` with the outputs of `model`, which is one of `ours`. Every difference can be bridged.
std::unique_ptr<Module> equivalent_model(Module& model, const TransformerConfig& ours, const TransformerConfig& theirs);

}  // namespace attune
