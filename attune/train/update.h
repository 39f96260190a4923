#pragma once
// One update of the parameters.

#include <cstdint>
#include <span>

#include "attune/data/batch_sampler.h"
#include "attune/models/transformer.h"
#include "attune/optim/adam.h"

namespace attune {

struct UpdateInput {
  std::span<const PackedBatch> batches;  // their gradients are added up
  int64_t step = 1;                      // of this update, from 1
  int64_t epoch = 1;                     // for messages, from 1
  int64_t first_batch = 1;               // place of batches[0] in the epoch, for messages, from 1
  double learning_rate = 0;
  double label_smoothing = 0;
  uint64_t seed = 1;           // of dropout, with ...
  uint64_t first_forward = 0;  // ... the number of the first forward pass, unique in the run
};

struct UpdateResult {
  double loss = 0;  // sum over the target tokens, label-smoothed
  double nll = 0;   // the same without smoothing
  int64_t tokens = 0;
  double gradient_norm = 0;  // of the mean over tokens, before clipping
};

/// Adam's step on the loss per target token of all batches together: however a set of sentence pairs is cut into
/// batches, the gradient is the same but for rounding. Gradients are cleared afterwards.
///
/// When loss or gradient is not finite, throws NumericError naming step, epoch, batch and the first parameter or
/// gradient with such a number, and leaves parameters and moments as they were.
UpdateResult update(Transformer& model, Adam& adam, const UpdateInput& input);

}  // namespace attune
