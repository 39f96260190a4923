#pragma once

#include "attune/data/batch_sampler.h"
#include "attune/models/transformer.h"

namespace attune {

/// Cross entropy of the batch's labels given its source and, for each place, the target before it (teacher forcing).
CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options);

}  // namespace attune
