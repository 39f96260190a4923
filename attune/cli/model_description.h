#pragma once
// Describes a configuration and its costs, as rows of a table.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attune/models/config.h"

namespace attune::cli {

using Description = std::vector<std::pair<std::string, std::string>>;

/// The parts of the model, most important first.
Description describe_architecture(const TransformerConfig& config);

/// Which layers have local attention, and what it is, "layers 1 to 5: window, size 512, positions rotary"; "" without
/// any.
std::string local_attention_text(const TransformerConfig& config);

/// Parameters by the parts that a model of this architecture has, named as its tensors are; they sum to the total.
std::vector<std::pair<std::string, int64_t>> parts_of(const TransformerConfig& config, const ParameterCounts& counts);

/// float32 bytes that decoding keeps for each token, in all layers.
struct CacheCost {
  int64_t self = 0;        // 0: the architecture does not decode
  int64_t cross = 0;       // for each source token; encoder_decoder
  int64_t multi_head = 0;  // the same with as many key heads as query heads: 2 d_model numbers a layer
};
CacheCost cache_cost(const TransformerConfig& config);

}  // namespace attune::cli
