#pragma once
// The corruption of text that a masked language model learns to undo.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

struct MaskingOptions {
  double probability = 0.15;              // of a token to be chosen; above 0, at most 1
  int32_t mask_id = 0;                    // what stands for a masked token
  int32_t vocab_size = 0;                 // of the tokenizer
  std::vector<int32_t> special_ids = {};  // neither chosen nor drawn in place of a chosen token
  uint64_t seed = 1;
  int64_t step = 0;       // number of the forward pass: every one masks elsewhere
  void validate() const;  // throws ConfigError

  /// mask_id, vocab_size and special_ids of a tokenizer: pad serves as the mask, since packed text has none, and pad,
  /// unk, bos and eos are special. Throws ConfigError when the tokenizer has no pad of its own (a SentencePiece model
  /// may use eos in its place).
  static MaskingOptions for_tokenizer(const Tokenizer& tokenizer);
};

struct MaskedBatch {
  std::vector<int32_t> tokens;   // [tokens], corrupted
  std::vector<int32_t> offsets;  // [sequences + 1]
  std::vector<int32_t> rows;     // [chosen], ascending: the places in `tokens` that are predicted
  std::vector<int32_t> labels;   // [chosen], what stood there
};

/// Chooses tokens and replaces 80 % of them by the mask and 10 % by a random ordinary token; 10 % stay. Devlin et al.
/// 2019, section 3.1. At least one token is chosen when any is ordinary. A pure function of its arguments: what happens
/// at a place depends on (seed, step, place) and the token there, not on the threads.
///   tokens [tokens]   offsets [sequences + 1], from 0 to tokens
/// Throws DataError on an id outside the vocabulary or bad offsets, ConfigError on bad options.
MaskedBatch mask_tokens(std::span<const int32_t> tokens, std::span<const int32_t> offsets,
                        const MaskingOptions& options);

}  // namespace attune
