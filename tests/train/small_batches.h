#pragma once
// Small models whose parameters are trained, and batches for them.

#include <memory>
#include <utility>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/random.h"
#include "attune/models/build.h"
#include "attune/train/batch_loss.h"

namespace attune {

inline std::vector<ParallelExample> examples() {
  std::vector<ParallelExample> examples;
  Random random(3);
  for (int i = 0; i < 24; ++i) {
    ParallelExample e;
    for (uint64_t n = 2 + random.below(6); n > 0; --n) e.source.push_back(static_cast<int32_t>(4 + random.below(16)));
    for (uint64_t n = 2 + random.below(6); n > 0; --n) e.target.push_back(static_cast<int32_t>(4 + random.below(16)));
    e.source.push_back(3);
    e.target.push_back(3);
    examples.push_back(e);
  }
  return examples;
}

inline PackedBatch batch_of(int32_t begin, int32_t end) {
  std::vector<int32_t> indices;
  for (int32_t i = begin; i < end; ++i) indices.push_back(i);
  return pack(examples(), indices, 2);
}

inline std::vector<TrainingBatch> batches_of(const Transformer& model, std::vector<PackedBatch> packed) {
  std::vector<TrainingBatch> batches;
  for (PackedBatch& batch : packed) batches.push_back(training_batch(model, std::move(batch)));
  return batches;
}

inline std::unique_ptr<Transformer> small_model(double dropout, int64_t d_ff = 64,
                                                const FeedForwardKind& feed_forward = Dense{}) {
  auto model = build_transformer({.source_vocab = 20,
                                  .target_vocab = 20,
                                  .d_model = 32,
                                  .heads = 4,
                                  .layers = 2,
                                  .d_ff = d_ff,
                                  .dropout = dropout,
                                  .attention_dropout = dropout,
                                  .activation_dropout = dropout,
                                  .feed_forward = feed_forward},
                                 7);
  require_gradients(*model);
  return model;
}

inline std::unique_ptr<DecoderLm> small_lm() {
  TransformerConfig config{.d_model = 32, .heads = 4, .layers = 1, .d_ff = 64, .dropout = 0};
  config.architecture = Architecture::decoder_lm;
  config.vocab = 20;
  config.context_length = 16;
  auto model = build_decoder_lm(config, 7);
  require_gradients(*model);
  return model;
}

inline LanguageModelBatch lm_batch(int rank) {
  LanguageModelBatch batch;
  batch.offsets = {0, 8};
  for (int32_t i = 0; i < 8; ++i) {
    batch.input.push_back((i * 3 + rank) % 20);
    batch.labels.push_back((i * 5 + rank) % 20);
  }
  return batch;
}

}  // namespace attune
