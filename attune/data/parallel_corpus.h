#pragma once
// Sentence pairs as token ids.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "attune/data/token_alignment.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// One sentence pair. Both sides end with eos, or are framed as PairFrame says; bos is added by the batch.
struct ParallelExample {
  std::vector<int32_t> source, target;
  std::vector<TokenLink> links = {};  // of corpora with alignments, see token_links()
};

/// The special tokens of a pair. The defaults are those of models that Attune trains.
struct PairFrame {
  bool by_tokenizer = false;  // a source has the special tokens that the tokenizer puts around texts, else eos
  int32_t start = -1;         // what the decoder reads first; -1: bos
  int32_t first = -1;         // what each target begins with; -1: nothing
  int32_t end = -1;           // what ends a target; -1: eos

  std::vector<int32_t> source(const Tokenizer& tokenizer, std::string_view text) const;
  std::vector<int32_t> target(const Tokenizer& tokenizer, std::string_view text) const;
  int32_t decoder_start(const Tokenizer& target) const { return start < 0 ? target.bos_id() : start; }
};

struct ParallelCorpusOptions {
  PairFrame frame = {};
  int64_t max_tokens = 256;  // of either side, eos included; longer pairs are left out
  bool skip_empty = true;    // leave out pairs where one side has only eos
  double held_out = 0;       // share of the pairs that is left out for validation, see is_held_out()
  /// Files with word alignments in Pharaoh's format (text/word_alignment.h), one for each source file, a line for each
  /// pair; none: examples have no links.
  std::vector<std::filesystem::path> alignments = {};
  ReadProgress on_read = {};
};

struct SkippedPairs {
  int64_t skipped_long = 0, skipped_empty = 0;  // pairs left out
  int64_t unaligned = 0;  // pairs without links, because their tokens have other words than their text
};

struct ParallelCorpus : SkippedPairs {
  std::vector<ParallelExample> examples;
};

/// Reads files with one sentence a line, plain or gzip; line i of the target translates line i of the source. The first
/// source file goes with the first target file, and so on. Encodes in parallel; the order of the lines is kept. Throws
/// DataError when two files have different numbers of lines, when no pair is left, and, naming the line, for an
/// alignment that parse_pharaoh() refuses. Throws ConfigError on bad options. The second form calls a function with
/// each pair in turn and holds no more than a block of lines.
ParallelCorpus load_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                    const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                    const Tokenizer& target, const ParallelCorpusOptions& options = {});
SkippedPairs read_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                  const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                  const Tokenizer& target, const ParallelCorpusOptions& options,
                                  const std::function<void(ParallelExample&&)>& take);

}  // namespace attune
