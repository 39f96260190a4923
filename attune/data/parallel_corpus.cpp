#include "attune/data/parallel_corpus.h"

#include <string>

#include "attune/base/error.h"
#include "attune/base/parallel.h"
#include "attune/data/text_file.h"

namespace attune {
namespace {

constexpr size_t kBlockPairs = 1 << 14;  // read and encoded at a time, so that memory holds ids rather than text
constexpr int64_t kPairsPerTask = 64;

struct TextPair {
  std::string source, target;
};

[[noreturn]] void fail_line_counts(LineReader& source, LineReader& target) {
  std::string line;
  while (source.next(line)) continue;
  while (target.next(line)) continue;
  fail<DataError>("{} has {} lines but {} has {}", source.name(), source.line_number(), target.name(),
                  target.line_number());
}

/// Fills `pairs` with the next lines of both files; false when there are none left.
bool read_block(LineReader& source, LineReader& target, std::vector<TextPair>& pairs) {
  pairs.clear();
  TextPair pair;
  while (pairs.size() < kBlockPairs) {
    const bool more = source.next(pair.source);
    if (target.next(pair.target) != more) fail_line_counts(source, target);
    if (!more) break;
    pairs.push_back(pair);
  }
  return !pairs.empty();
}

void encode_block(const std::vector<TextPair>& pairs, const Tokenizer& source, const Tokenizer& target,
                  const ParallelCorpusOptions& options, ParallelCorpus& corpus) {
  std::vector<ParallelExample> encoded(pairs.size());
  parallel_for(static_cast<int64_t>(pairs.size()), kPairsPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      encoded[i].source = source.encode(pairs[i].source);
      encoded[i].target = target.encode(pairs[i].target);
    }
  });
  const auto limit = static_cast<size_t>(options.max_tokens);
  for (ParallelExample& example : encoded) {
    if (options.skip_empty && (example.source.empty() || example.target.empty())) {
      ++corpus.skipped_empty;
      continue;
    }
    example.source.push_back(source.eos_id());
    example.target.push_back(target.eos_id());
    if (example.source.size() > limit || example.target.size() > limit)
      ++corpus.skipped_long;
    else
      corpus.examples.push_back(std::move(example));
  }
}

}  // namespace

ParallelCorpus load_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                    const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                    const Tokenizer& target, const ParallelCorpusOptions& options) {
  if (options.max_tokens < 1) fail<ConfigError>("max_tokens = {} is below 1", options.max_tokens);
  if (source_files.empty()) fail<ConfigError>("a parallel corpus needs at least one source file");
  if (source_files.size() != target_files.size())
    fail<ConfigError>("there are {} source files but {} target files", source_files.size(), target_files.size());
  ParallelCorpus corpus;
  std::vector<TextPair> pairs;
  for (size_t file = 0; file < source_files.size(); ++file) {
    LineReader source_lines(source_files[file]), target_lines(target_files[file]);
    while (read_block(source_lines, target_lines, pairs)) encode_block(pairs, source, target, options, corpus);
  }
  if (corpus.examples.empty())
    fail<DataError>("{} and {}: no sentence pair is left ({} empty, {} longer than {} tokens)",
                    source_files[0].string(), target_files[0].string(), corpus.skipped_empty, corpus.skipped_long,
                    options.max_tokens);
  return corpus;
}

}  // namespace attune
