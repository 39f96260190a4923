#pragma once
// The adapters of a whole module.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/nn/adapters/adapter.h"
#include "attune/tensor/later_tensor.h"

namespace attune {

/// A projection of a module.
struct AdapterSlot {
  std::string name;  // "encoder.layers.0.self_attention.w_q"
  Parameter* weight;
  Adapter* adapter;

  int64_t out() const { return shape_of(*weight)[0]; }
  int64_t in() const { return shape_of(*weight)[1]; }
};

/// Whether a parameter of this name belongs to an adapter: "encoder.layers.0.self_attention.w_q.lora.a".
bool is_of_adapter(std::string_view parameter);

/// Every projection, in the order of visit(); a shared one appears under its first name.
std::vector<AdapterSlot> adapter_slots(Module& module);

/// Gives the projections that config.targets name new adapters, which add nothing yet: A has normal random numbers of
/// variance 1 / (3 in), as the authors' program, and B zeros. Numbers the dropouts. Throws ConfigError naming a target
/// that names no projection, or one whose weight is not read by that product alone.
void add_adapters(Module& module, const LoraConfig& config, uint64_t seed);

/// Returns the weight of a projection plus what its adapter adds, if there is one: in a tensor of its own, without
/// panels, and widened if it was quantised. Throws ConfigError when the weight is there as panels alone.
Parameter with_adapter(const Parameter& weight, const Adapter& adapter);

/// A parameter as files store it.
struct AdaptedParameter {
  std::string name;
  Tensor tensor;
  /// In place of `tensor`, for values that have to be computed: those of a weight plus its adapter, or of a quantised
  /// weight. Files take one after the other, so that these are never all in memory.
  std::optional<LaterTensor> later = {};
};

/// All parameters but those of adapters, which are added to their weights; a shared one once. The module has to outlive
/// the result.
std::vector<AdaptedParameter> adapted_parameters(Module& module);

/// Adds every adapter's product to the weight of its projection, and removes the adapter. A bfloat16 weight stays
/// bfloat16. The sum is written over a weight whose memory only this module's adjacent parameters hold, so that they
/// stay adjacent; any other weight, as one on the pages of a file, gets a tensor of its own. Throws as with_adapter()
/// does.
void merge_adapters(Module& module);

}  // namespace attune
