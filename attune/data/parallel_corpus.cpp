#include "attune/data/parallel_corpus.h"

#include <string>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/text/text_file.h"

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

using Take = std::function<void(ParallelExample&&)>;

void encode_block(const std::vector<TextPair>& pairs, const Tokenizer& source, const Tokenizer& target,
                  const ParallelCorpusOptions& options, SkippedPairs& skipped, const Take& take) {
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
      ++skipped.skipped_empty;
      continue;
    }
    example.source.push_back(source.eos_id());
    example.target.push_back(target.eos_id());
    if (example.source.size() > limit || example.target.size() > limit)
      ++skipped.skipped_long;
    else
      take(std::move(example));
  }
}

}  // namespace

SkippedPairs read_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                  const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                  const Tokenizer& target, const ParallelCorpusOptions& options, const Take& take) {
  if (options.max_tokens < 1) fail<ConfigError>("max_tokens = {} is below 1", options.max_tokens);
  if (source_files.empty()) fail<ConfigError>("a parallel corpus needs at least one source file");
  if (source_files.size() != target_files.size())
    fail<ConfigError>("there are {} source files but {} target files", source_files.size(), target_files.size());
  SkippedPairs skipped;
  int64_t taken = 0;
  std::vector<TextPair> pairs;
  for (size_t file = 0; file < source_files.size(); ++file) {
    LineReader source_lines(source_files[file]), target_lines(target_files[file]);
    int64_t reported = 0;
    while (read_block(source_lines, target_lines, pairs)) {
      encode_block(pairs, source, target, options, skipped, [&](ParallelExample&& example) {
        ++taken;
        take(std::move(example));
      });
      const int64_t read = source_lines.bytes_read() + target_lines.bytes_read();
      if (options.on_read) options.on_read(read - std::exchange(reported, read));
    }
  }
  if (taken == 0)
    fail<DataError>("{} and {}: no sentence pair is left ({} empty, {} longer than {} tokens)",
                    source_files[0].string(), target_files[0].string(), skipped.skipped_empty, skipped.skipped_long,
                    options.max_tokens);
  return skipped;
}

ParallelCorpus load_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                    const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                    const Tokenizer& target, const ParallelCorpusOptions& options) {
  ParallelCorpus corpus;
  static_cast<SkippedPairs&>(corpus) =
      read_parallel_corpus(source_files, target_files, source, target, options,
                           [&](ParallelExample&& example) { corpus.examples.push_back(std::move(example)); });
  return corpus;
}

}  // namespace attune
