#pragma once
// Which parameters of a model a run changes, and how fast.

#include <string>
#include <vector>

#include "attune/nn/module.h"
#include "attune/train/config.h"

namespace attune {

/// Adds the adapters of config.lora and freezes parameters: those that train.freeze names and, with adapters, all but
/// the adapters and `new_names`, which the initial model does not have. A shared parameter goes by each of its
/// names. Throws ConfigError naming a pattern that names nothing, or when nothing would be trained.
void choose_trained(const RunConfig& config, const std::vector<std::string>& new_names, Module& model);

/// The factor of the learning rate of each parameter: train.layer_learning_rate_decay to the power of its depth. Heads
/// have the depth 0, the last layer of a stack 1, the first one of L layers L, embeddings L + 1. Empty where all are 1.
/// Source: Howard and Ruder 2018, section 3.2, "discriminative fine-tuning", with the depths of Clark et al. 2020
/// (ELECTRA).
std::vector<double> learning_rate_factors(const RunConfig& config, const std::vector<NamedParameter>& parameters);

}  // namespace attune
