#pragma once
// Tokenises a training text once, for a corpus that is larger than memory or that is trained on again and again.

#include "attune/train/prepared_folder.h"

namespace attune {

struct PrepareProgress {
  int64_t bytes = 0;  // of the text's files that were read, before decompression
  int64_t total_bytes = 0;
  int64_t tokens = 0;  // of both sides
  int64_t shards = 0;
};

struct PrepareOptions {
  int64_t shard_tokens = int64_t{1} << 23;  // a shard ends with the example that reaches this number
  /// Called with the progress, first when the tokenizers are there; an exception ends the work.
  std::function<void(const PrepareProgress&)> progress = {};
  void validate() const;  // throws ConfigError
};

/// Reads the training text of config.data, with the tokenizers that a training run would use, and writes the folder
/// whole or not at all. Memory holds a block of text and a shard; where a tokenizer is learnt, also a sample of the
/// text or the counts of its words. train.device need not be here. Throws ConfigError, DataError and FileError.
PreparedIndex prepare_corpus(const RunConfig& config, const std::filesystem::path& folder,
                             const PrepareOptions& options = {});

}  // namespace attune
