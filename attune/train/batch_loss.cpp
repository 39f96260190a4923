#include "attune/train/batch_loss.h"

namespace attune {

CrossEntropy batch_loss(const Transformer& model, const PackedBatch& batch, const CrossEntropyOptions& options) {
  return model.loss(pack_tokens(batch.source, batch.source_offsets),
                    pack_tokens(batch.target_input, batch.target_offsets),
                    Tensor::from({batch.target_tokens()}, batch.labels), options);
}

}  // namespace attune
