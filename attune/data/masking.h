#pragma once
// Hides tokens of a text, which a masked language model learns to predict.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/text/tokenizer.h"

namespace attune {

struct MaskingOptions {
  double probability = 0.15;              // of a token to be chosen; above 0, at most 1
  int32_t mask_id = 0;                    // replaces a masked token
  int32_t vocab_size = 0;                 // of the tokenizer
  std::vector<int32_t> special_ids = {};  // neither chosen nor drawn in place of a chosen token
  uint64_t seed = 1;
  int64_t step = 0;       // number of the forward pass: each masks other tokens
  void validate() const;  // throws ConfigError

  /// mask_id, vocab_size and special_ids of a tokenizer. Where it names no mask, pad serves as the mask, since packed
  /// text has no padding; all that it names (pad, unk, bos, eos and the like) are special. Throws ConfigError when
  /// there is neither a mask nor a pad of its own (a SentencePiece model may use eos in its place).
  static MaskingOptions for_tokenizer(const Tokenizer& tokenizer);
};

struct MaskedBatch {
  std::vector<int32_t> tokens;   // [tokens], corrupted
  std::vector<int32_t> offsets;  // [sequences + 1]
  std::vector<int32_t> rows;     // [chosen], ascending: the positions in `tokens` that are predicted
  std::vector<int32_t> labels;   // [chosen], the original tokens there
};

/// Chooses tokens and replaces 80 % of them by the mask and 10 % by a random ordinary token; 10 % stay. Devlin et al.
/// 2019, section 3.1. At least one token is chosen when any is ordinary. A pure function of its arguments: the outcome
/// at a position depends on (seed, step, position) and the token there, not on the number of threads.
///   tokens [tokens]   offsets [sequences + 1], from 0 to tokens
/// Throws DataError on an id outside the vocabulary or bad offsets, ConfigError on bad options.
MaskedBatch mask_tokens(std::span<const int32_t> tokens, std::span<const int32_t> offsets,
                        const MaskingOptions& options);

}  // namespace attune
