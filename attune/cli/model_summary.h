#pragma once
// What a configuration costs, without building the model.

#include <cstdint>

#include "attune/models/config.h"

namespace attune::cli {

/// Parameters (numbers, not bytes) by component. All layers of a stack are alike.
struct ModelSummary {
  struct Layer {
    int64_t self_attention = 0;
    int64_t cross_attention = 0;  // of a decoder layer
    int64_t feed_forward = 0;
    int64_t norms = 0;
    int64_t total() const { return self_attention + cross_attention + feed_forward + norms; }
  };

  int64_t layers = 0;
  int64_t source_embedding = 0;
  int64_t target_embedding = 0;  // 0 when it is the source's table
  Layer encoder_layer, decoder_layer;
  int64_t final_norm = 0;  // of each stack
  int64_t projection = 0;  // the bias alone when the weight is the target embedding

  // What decoding keeps in float32: for each target token, and for each source token.
  int64_t self_cache_bytes = 0;
  int64_t cross_cache_bytes = 0;
  int64_t standard_cache_bytes = 0;  // of either with multi-head attention: layers * 2 * d_model * 4

  int64_t encoder() const { return layers * encoder_layer.total() + final_norm; }
  int64_t decoder() const { return layers * decoder_layer.total() + final_norm; }
  int64_t total() const { return source_embedding + target_embedding + encoder() + decoder() + projection; }
};

/// Throws ConfigError for a configuration that is not valid.
ModelSummary summarize(const TransformerConfig& config);

}  // namespace attune::cli
