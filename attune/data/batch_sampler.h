#pragma once
// Forms batches of examples, and packs a batch for a model.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "attune/data/parallel_corpus.h"

namespace attune {

/// Sentence pairs one after another, without padding. Sentence i has the source tokens [source_offsets[i],
/// source_offsets[i + 1]) and the target tokens [target_offsets[i], target_offsets[i + 1]).
struct PackedBatch {
  std::vector<int32_t> source;          // [source_tokens], each sentence with eos
  std::vector<int32_t> source_offsets;  // [sentences + 1], from 0 to source_tokens
  std::vector<int32_t> target_input;    // [target_tokens], the decoder's input: bos, then the target without eos
  std::vector<int32_t> target_offsets;  // [sentences + 1], of target_input and labels
  std::vector<int32_t> labels;          // [target_tokens], the tokens to predict: the target with eos

  int64_t sentences() const { return static_cast<int64_t>(source_offsets.size()) - 1; }
  int64_t source_tokens() const { return static_cast<int64_t>(source.size()); }
  int64_t target_tokens() const { return static_cast<int64_t>(labels.size()); }
};

/// Packs the chosen examples in the order of `indices`. Throws DataError on an index outside of `examples`, an empty
/// target or more tokens than 32 bits can count.
PackedBatch pack(std::span<const ParallelExample> examples, std::span<const int32_t> indices, int32_t bos_id);

struct BatchSamplerOptions {
  int64_t max_tokens = 4096;  // of a batch, eos included; the limit of the source and of the target
  int64_t max_sentences = 0;  // of a batch; 0: no limit
  uint64_t seed = 1;
  bool shuffle = true;    // false: in the order of the corpus, the same every epoch
  void validate() const;  // throws ConfigError
};

/// Forms the batches of an epoch, a pure function of (lengths, options, epoch). Every example is in exactly one batch;
/// one that is longer than max_tokens is alone in its batch.
///
/// With `shuffle`, examples are divided at random into pools of about 64 batches, and each pool is sorted by length:
/// the sentences of a batch have similar lengths, and each epoch puts other sentences together. The order of the
/// batches is random.
class BatchSampler {
 public:
  /// `lengths`: source and target tokens of each example, eos included. Throws ConfigError, and DataError on a negative
  /// length.
  BatchSampler(std::vector<std::pair<int32_t, int32_t>> lengths, const BatchSamplerOptions& options);

  /// Returns each batch as indices of examples. Epochs count from 0.
  std::vector<std::vector<int32_t>> epoch(int64_t epoch) const;

 private:
  std::vector<std::pair<int32_t, int32_t>> lengths_;
  BatchSamplerOptions options_;
};

/// The lengths of a corpus as BatchSampler takes them.
std::vector<std::pair<int32_t, int32_t>> lengths_of(std::span<const ParallelExample> examples);

}  // namespace attune
