#pragma once
// Cuts documents into sequences that fit an encoder.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attune/text/text_frame.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// Cuts documents into sequences as a classifier reads them: bos, at most max_tokens - 2 tokens, eos; or with what the
/// tokenizer puts around texts in place of bos and eos. A sequence of special tokens alone has nothing that could be
/// hidden from a masked language model: it is left out and counted.
class SequenceCutter {
 public:
  using Take = std::function<void(std::span<const int32_t> sequence)>;

  /// The tokenizer has to outlive this. Throws ConfigError when max_tokens leaves no room for a token.
  SequenceCutter(const Tokenizer& tokenizer, int64_t max_tokens, Take take, bool tokenizer_frames_texts = false);

  /// Adds the next ids of the document; a bos at its beginning and an eos at its end are left out.
  void add(std::span<const int32_t> ids);
  void end_document();

  int64_t sequences() const { return sequences_; }
  int64_t skipped() const { return skipped_; }

 private:
  void hand_over(std::span<const int32_t> part);

  const Tokenizer& tokenizer_;
  TextFrame frame_;
  size_t room_;
  Take take_;
  std::vector<int32_t> pending_, sequence_;
  bool at_start_ = true;  // of a document
  int64_t sequences_ = 0, skipped_ = 0;
};

}  // namespace attune
