#pragma once

#include <memory>
#include <vector>

#include "attune/inference/decoding/decoding_model.h"

namespace attune {

/// Encoder-decoder models that decode together: their logits are the logarithm of the mean of their probabilities
/// (Sutskever et al. 2014, section 3.4; as fairseq has it), so that a repetition_penalty for logits is refused.
/// Attention to the source is that of the first model. All share one cache, which has one list of slots and the layers
/// of every model.
class EnsembleDecodingModel final : public DecodingModel {
 public:
  /// Throws ConfigError unless there is a model and all have vocabularies of the same sizes.
  explicit EnsembleDecodingModel(std::vector<std::shared_ptr<const DecodingModel>> models);

  int64_t vocab() const override;
  int64_t source_vocab() const override;
  int64_t longest_sequence() const override;
  bool gives_log_probabilities() const override { return true; }
  int64_t cache_bytes(int64_t tokens, int64_t source_tokens) const override;
  KvCache start() const override;
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override;
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override;

 private:
  template <class F>
  void for_each_part(KvCache& cache, F&& f) const;

  std::vector<std::shared_ptr<const DecodingModel>> models_;
  std::vector<size_t> layers_;  // of each model
};

}  // namespace attune
