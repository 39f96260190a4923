#pragma once
// The loss of a batch under each kind of model.

#include "attune/data/batch_sampler.h"
#include "attune/data/labelled_corpus.h"
#include "attune/data/masking.h"
#include "attune/data/window_sampler.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "attune/train/update.h"

namespace attune {

/// Cross entropy of the batch's labels, given its source and, at each position, the target before it (teacher forcing).
CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options);
/// The same, with the loss of a guided head, see Transformer::loss().
CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options,
                        const GuidedAlignment& guided);
/// The tokens of the texts, with their types where the model has several.
PackedTokens packed_texts(const LabelledBatch& batch, const TransformerConfig& config);
/// Cross entropy of the texts' labels; a text with the label -1 does not count. For a regression, `loss` is the mean or
/// the scaled sum of the squared errors, `sum_negative_log_likelihood` is their sum, and `correct` is undefined.
CrossEntropy batch_loss(const EncoderClassifier& model, const LabelledBatch& batch, const CrossEntropyOptions& options);
/// Cross entropy of the tokens that were hidden.
CrossEntropy batch_loss(const EncoderMaskedLm& model, const MaskedBatch& batch, const CrossEntropyOptions& options);
/// Cross entropy of the token that follows each token; labels of -1 do not count.
CrossEntropy batch_loss(const DecoderLm& model, const LanguageModelBatch& batch, const CrossEntropyOptions& options);

/// A batch as update() takes it. The model has to outlive it; all labels count but those of -1 of a language model.
/// With CrossEntropyOptions::r_drop its loss is that of twice() the batch.
TrainingBatch training_batch(const Transformer& model, PackedBatch batch);
TrainingBatch training_batch(const Transformer& model, PackedBatch batch, GuidedAlignment guided);
TrainingBatch training_batch(const EncoderClassifier& model, LabelledBatch batch);
TrainingBatch training_batch(const EncoderMaskedLm& model, MaskedBatch batch);
TrainingBatch training_batch(const DecoderLm& model, LanguageModelBatch batch);

}  // namespace attune
