#include "attune/train/batch_loss.h"

#include <algorithm>
#include <memory>
#include <optional>
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

// What a loss reads of a batch on the device.
struct BatchInputs {
  PackedTokens source, target;
  Indices labels, rows;
};

BatchInputs inputs_of(const Transformer& /*model*/, const PackedBatch& batch) {
  return {.source = pack_tokens(batch.source, batch.source_offsets),
          .target = pack_tokens(batch.target_input, batch.target_offsets),
          .labels = Indices(batch.labels),
          .rows = {}};
}
BatchInputs inputs_of(const EncoderClassifier& model, const LabelledBatch& batch) {
  return {.source = packed_texts(batch, model.config()), .target = {}, .labels = Indices(batch.labels), .rows = {}};
}
BatchInputs inputs_of(const EncoderMaskedLm& /*model*/, const MaskedBatch& batch) {
  return {.source = pack_tokens(batch.tokens, batch.offsets),
          .target = {},
          .labels = Indices(batch.labels),
          .rows = Indices(batch.rows)};
}
BatchInputs inputs_of(const DecoderLm& /*model*/, const LanguageModelBatch& batch) {
  return {.source = pack_tokens(batch.input, batch.offsets), .target = {}, .labels = Indices(batch.labels), .rows = {}};
}

CrossEntropy loss_of(const Transformer& model, const PackedBatch& /*batch*/, const BatchInputs& inputs,
                     const CrossEntropyOptions& options) {
  return model.loss(inputs.source, inputs.target, inputs.labels, options);
}
CrossEntropy loss_of(const Transformer& model, const PackedBatch& /*batch*/, const BatchInputs& inputs,
                     const CrossEntropyOptions& options, const GuidedAlignment& guided) {
  return model.loss(inputs.source, inputs.target, inputs.labels, options, guided);
}
CrossEntropy loss_of(const EncoderClassifier& model, const LabelledBatch& batch, const BatchInputs& inputs,
                     const CrossEntropyOptions& options) {
  if (!model.config().is_regression()) return model.loss(inputs.source, inputs.labels, options);
  const SquaredError error = model.regression_loss(inputs.source, batch.values, options.scale);
  return {.loss = error.loss, .sum_negative_log_likelihood = error.sum, .labels = batch.texts()};
}
CrossEntropy loss_of(const EncoderMaskedLm& model, const MaskedBatch& /*batch*/, const BatchInputs& inputs,
                     const CrossEntropyOptions& options) {
  return model.loss(inputs.source, inputs.rows, inputs.labels, options);
}
CrossEntropy loss_of(const DecoderLm& model, const LanguageModelBatch& /*batch*/, const BatchInputs& inputs,
                     const CrossEntropyOptions& options) {
  return model.loss(inputs.source, inputs.labels, options);
}

void send(const BatchInputs& inputs, const Device& device) {
  for (const Indices* indices :
       {&inputs.source.ids, &inputs.source.types, &inputs.target.ids, &inputs.labels, &inputs.rows})
    indices->send(device);
}

// `guide` is the alignment of a guided head, or nothing. The loss that reads what was sent drops it.
template <class Model, class Batch, class... Guide>
TrainingBatch make(const Model& model, Batch batch, int64_t tokens, Guide... guide) {
  struct Kept {
    Batch batch;
    std::optional<BatchInputs> sent;
  };
  TrainingBatch made{.labels = size_of(batch.labels), .tokens = tokens, .loss = {}};
  const auto kept = std::make_shared<Kept>(Kept{std::move(batch), {}});
  made.send = [&model, kept](const Device& device, double r_drop) {
    if (device.is_host()) return;
    kept->sent = r_drop > 0 ? inputs_of(model, twice(kept->batch)) : inputs_of(model, kept->batch);
    send(*kept->sent, device);
  };
  made.loss = [&model, kept, guide...](const CrossEntropyOptions& options) {
    const std::optional<BatchInputs> sent = std::exchange(kept->sent, std::nullopt);
    const auto loss = [&](const Batch& now, const auto&... of_guide) {
      return loss_of(model, now, sent ? *sent : inputs_of(model, now), options, of_guide...);
    };
    return options.r_drop > 0 ? loss(twice(kept->batch), twice(guide)...) : loss(kept->batch, guide...);
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
  return loss_of(model, batch, inputs_of(model, batch), options);
}
CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options,
                        const GuidedAlignment& guided) {
  return loss_of(model, batch, inputs_of(model, batch), options, guided);
}
CrossEntropy batch_loss(const EncoderClassifier& model, const LabelledBatch& batch,
                        const CrossEntropyOptions& options) {
  return loss_of(model, batch, inputs_of(model, batch), options);
}
CrossEntropy batch_loss(const EncoderMaskedLm& model, const MaskedBatch& batch, const CrossEntropyOptions& options) {
  return loss_of(model, batch, inputs_of(model, batch), options);
}
CrossEntropy batch_loss(const DecoderLm& model, const LanguageModelBatch& batch, const CrossEntropyOptions& options) {
  return loss_of(model, batch, inputs_of(model, batch), options);
}

TrainingBatch training_batch(const Transformer& model, PackedBatch batch) {
  const int64_t tokens = size_of(batch.labels);
  return make(model, std::move(batch), tokens);
}

TrainingBatch training_batch(const Transformer& model, PackedBatch batch, GuidedAlignment guided) {
  const int64_t tokens = size_of(batch.labels);
  return make(model, std::move(batch), tokens, std::move(guided));
}

TrainingBatch training_batch(const EncoderClassifier& model, LabelledBatch batch) {
  const int64_t tokens = size_of(batch.tokens);
  return make(model, std::move(batch), tokens);
}

TrainingBatch training_batch(const EncoderMaskedLm& model, MaskedBatch batch) {
  const int64_t tokens = size_of(batch.tokens);
  return make(model, std::move(batch), tokens);
}

TrainingBatch training_batch(const DecoderLm& model, LanguageModelBatch batch) {
  const auto predicted = std::ranges::count_if(batch.labels, [](int32_t label) { return label >= 0; });
  const int64_t tokens = size_of(batch.input);
  TrainingBatch made = make(model, std::move(batch), tokens);
  made.labels = predicted;
  return made;
}

}  // namespace attune
