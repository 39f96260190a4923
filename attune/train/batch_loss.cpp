#include "attune/train/batch_loss.h"

#include <algorithm>
#include <utility>

#include "attune/data/twice.h"

namespace attune {
namespace {

int64_t size_of(const std::vector<int32_t>& values) {
  return static_cast<int64_t>(values.size());
}

GuidedAlignment twice(const GuidedAlignment& guided) {
  return {.links = {.offsets = offsets_twice(guided.links.offsets), .keys = values_twice(guided.links.keys)},
          .weight = guided.weight};
}

// `batch` is moved from once `tokens` is known.
template <class Model, class Batch>
TrainingBatch make(const Model& model, Batch&& batch, int64_t tokens) {
  TrainingBatch made{.labels = size_of(batch.labels), .tokens = tokens, .loss = {}};
  made.loss = [&model, kept = std::forward<Batch>(batch)](const CrossEntropyOptions& options) {
    if (options.r_drop > 0) return batch_loss(model, twice(kept), options);
    return batch_loss(model, kept, options);
  };
  return made;
}

}  // namespace

PackedTokens packed_texts(const LabelledBatch& batch, const TransformerConfig& config) {
  PackedTokens tokens = pack_tokens(batch.tokens, batch.offsets);
  if (!batch.types.empty() && config.token_types > 1) tokens.types = Indices(batch.types);
  return tokens;
}

CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options) {
  return model.loss(pack_tokens(batch.source, batch.source_offsets),
                    pack_tokens(batch.target_input, batch.target_offsets), Indices(batch.labels), options);
}

CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options,
                        const GuidedAlignment& guided) {
  return model.loss(pack_tokens(batch.source, batch.source_offsets),
                    pack_tokens(batch.target_input, batch.target_offsets), Indices(batch.labels), options, guided);
}

CrossEntropy batch_loss(const EncoderClassifier& model, const LabelledBatch& batch,
                        const CrossEntropyOptions& options) {
  const PackedTokens tokens = packed_texts(batch, model.config());
  if (!model.config().is_regression()) return model.loss(tokens, Indices(batch.labels), options);
  const SquaredError error = model.regression_loss(tokens, batch.values, options.scale);
  return {.loss = error.loss, .sum_negative_log_likelihood = error.sum, .labels = batch.texts()};
}

CrossEntropy batch_loss(const EncoderMaskedLm& model, const MaskedBatch& batch, const CrossEntropyOptions& options) {
  return model.loss(pack_tokens(batch.tokens, batch.offsets), Indices(batch.rows), Indices(batch.labels), options);
}

CrossEntropy batch_loss(const DecoderLm& model, const LanguageModelBatch& batch, const CrossEntropyOptions& options) {
  return model.loss(pack_tokens(batch.input, batch.offsets), Indices(batch.labels), options);
}

TrainingBatch training_batch(const Transformer& model, PackedBatch batch) {
  return make(model, std::move(batch), size_of(batch.labels));
}

TrainingBatch training_batch(const Transformer& model, PackedBatch batch, GuidedAlignment guided) {
  TrainingBatch made{.labels = size_of(batch.labels), .tokens = size_of(batch.labels), .loss = {}};
  made.loss = [&model, kept = std::move(batch), guide = std::move(guided)](const CrossEntropyOptions& options) {
    if (options.r_drop > 0) return batch_loss(model, twice(kept), options, twice(guide));
    return batch_loss(model, kept, options, guide);
  };
  return made;
}

TrainingBatch training_batch(const EncoderClassifier& model, LabelledBatch batch) {
  return make(model, std::move(batch), size_of(batch.tokens));
}

TrainingBatch training_batch(const EncoderMaskedLm& model, MaskedBatch batch) {
  return make(model, std::move(batch), size_of(batch.tokens));
}

TrainingBatch training_batch(const DecoderLm& model, LanguageModelBatch batch) {
  const auto predicted = std::ranges::count_if(batch.labels, [](int32_t label) { return label >= 0; });
  TrainingBatch made = make(model, std::move(batch), size_of(batch.input));
  made.labels = predicted;
  return made;
}

}  // namespace attune
