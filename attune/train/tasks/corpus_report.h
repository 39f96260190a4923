#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

/// The size of the training text; a position in an epoch holds only for a text of this size.
struct CorpusSize {
  int64_t examples = 0;       // sentence pairs, labelled texts or documents, see count_of_examples()
  int64_t tokens = 0;         // of the source, where there are two sides
  int64_t target_tokens = 0;  // where there are two sides
  bool operator==(const CorpusSize&) const = default;
};

struct CorpusReport {
  CorpusSize size;
  int64_t skipped_long = 0, skipped_empty = 0;  // examples that were left out
  int64_t cut = 0;                              // texts that were too long: their beginning was kept
  int64_t unaligned = 0;                        // pairs whose alignment does not fit their tokens, see SkippedPairs
  int64_t validation_examples = 0;              // 0: there is no validation
};

}  // namespace attune
