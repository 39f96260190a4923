#include "attune/data/parallel_corpus.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/data/held_out.h"
#include "attune/text/text_file.h"

namespace attune {
namespace {

// Read and encoded at a time, so that memory holds ids rather than text.
constexpr size_t kBlockPairs = 1 << 14;
constexpr size_t kBlockBytes = size_t{16} << 20;
constexpr int64_t kPairsPerTask = 64;

struct TextPair {
  std::string source, target;
  WordAlignment alignment = {};
};

[[noreturn]] void fail_line_counts(LineReader& source, LineReader& other) {
  std::string line;
  while (source.next(line)) continue;
  while (other.next(line)) continue;
  fail<DataError>("{} has {} lines but {} has {}", source.name(), source.line_number(), other.name(),
                  other.line_number());
}

// The files that belong together.
struct Readers {
  LineReader source, target;
  std::optional<LineReader> alignments;

  Readers(const std::filesystem::path& source_file, const std::filesystem::path& target_file,
          const std::filesystem::path* alignment_file)
      : source(source_file), target(target_file) {
    if (alignment_file != nullptr) alignments.emplace(*alignment_file);
  }
  int64_t bytes_read() const { return source.bytes_read() + target.bytes_read(); }
};

/// Fills `pairs` with the next lines of the files, without the share that is held out. Returns false when no lines are
/// left. `lines` counts the lines of all files so far.
bool read_block(Readers& readers, double held_out, int64_t& lines, std::vector<TextPair>& pairs) {
  pairs.clear();
  TextPair pair;
  std::string line;
  size_t bytes = 0;
  while (pairs.size() < kBlockPairs && bytes < kBlockBytes) {
    const bool more = readers.source.next(pair.source);
    if (readers.target.next(pair.target) != more) fail_line_counts(readers.source, readers.target);
    LineReader* const alignments = readers.alignments ? &*readers.alignments : nullptr;
    if (alignments != nullptr && alignments->next(line) != more) fail_line_counts(readers.source, *alignments);
    if (!more) break;
    if (alignments != nullptr)
      pair.alignment = parse_pharaoh(line, count_words(pair.source), count_words(pair.target),
                                     fmt::format("{}:{}", alignments->name(), alignments->line_number()));
    if (is_held_out(lines++, held_out)) continue;
    bytes += pair.source.size() + pair.target.size() + pair.alignment.size() * sizeof(pair.alignment[0]);
    pairs.push_back(pair);
  }
  return !pairs.empty();
}

// Returns the links of a pair's tokens; nothing if the decoded tokens have other words than the text, as with unknown
// characters.
std::optional<std::vector<TokenLink>> links_of(const TextPair& pair, const ParallelExample& example,
                                               const Tokenizer& source, const Tokenizer& target) {
  const std::vector<int32_t> source_words = words_of_tokens(source, example.source);
  const std::vector<int32_t> target_words = words_of_tokens(target, example.target);
  const auto has_words_of = [](const std::vector<int32_t>& words, const std::string& text) {
    return !words.empty() && words.back() + 1 == count_words(text);
  };
  if (!has_words_of(source_words, pair.source) || !has_words_of(target_words, pair.target)) return std::nullopt;
  return token_links(pair.alignment, source_words, target_words);
}

// How many tokens the model reads before the text; nothing where the text is not there as a whole.
std::optional<int32_t> place_of_text(const std::vector<int32_t>& text, const std::vector<int32_t>& read) {
  // Clang 14 does not compile std::ranges::search().
  const auto found = std::search(read.begin(), read.end(), text.begin(), text.end());
  if (found == read.end() && !text.empty()) return std::nullopt;
  return static_cast<int32_t>(found - read.begin());
}

// The links of a pair, between the tokens that the model reads.
std::optional<std::vector<TokenLink>> links_in(const ParallelExample& read, const TextPair& pair,
                                               const Tokenizer& source, const Tokenizer& target) {
  const ParallelExample texts{source.encode(pair.source), target.encode_target(pair.target)};
  std::optional<std::vector<TokenLink>> links = links_of(pair, texts, source, target);
  const auto before_source = place_of_text(texts.source, read.source);
  const auto before_target = place_of_text(texts.target, read.target);
  if (!links || !before_source || !before_target) return std::nullopt;
  for (TokenLink& link : *links) link = {link.target + *before_target, link.source + *before_source};
  return links;
}

using TakePair = std::function<void(ParallelExample&&)>;

void encode_block(const std::vector<TextPair>& pairs, const Tokenizer& source, const Tokenizer& target,
                  const ParallelCorpusOptions& options, SkippedPairs& skipped, const TakePair& take) {
  const size_t empty_source = options.frame.source(source, "").size();
  const size_t empty_target = options.frame.target(target, "").size();
  const auto limit = static_cast<size_t>(options.max_tokens);
  const auto is_empty = [&](const ParallelExample& pair) {
    return options.skip_empty && (pair.source.size() == empty_source || pair.target.size() == empty_target);
  };
  const auto is_long = [&](const ParallelExample& pair) {
    return pair.source.size() > limit || pair.target.size() > limit;
  };
  std::vector<ParallelExample> encoded(pairs.size());
  std::vector<char> unaligned(pairs.size());
  parallel_for(static_cast<int64_t>(pairs.size()), kPairsPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      encoded[i].source = options.frame.source(source, pairs[i].source);
      encoded[i].target = options.frame.target(target, pairs[i].target);
      if (options.alignments.empty() || is_empty(encoded[i]) || is_long(encoded[i])) continue;
      auto links = links_in(encoded[i], pairs[i], source, target);
      unaligned[i] = !links;
      if (links) encoded[i].links = std::move(*links);
    }
  });
  for (size_t i = 0; i < encoded.size(); ++i) {
    ParallelExample& example = encoded[i];
    if (is_empty(example)) {
      ++skipped.skipped_empty;
      continue;
    }
    if (is_long(example)) {
      ++skipped.skipped_long;
      continue;
    }
    skipped.unaligned += unaligned[i];
    take(std::move(example));
  }
}

}  // namespace

std::vector<int32_t> PairFrame::source(const Tokenizer& tokenizer, std::string_view text) const {
  if (by_tokenizer) return tokenizer.encode_for_model(text).ids;
  std::vector<int32_t> ids = tokenizer.encode(text);
  ids.push_back(tokenizer.eos_id());
  return ids;
}

std::vector<int32_t> PairFrame::target(const Tokenizer& tokenizer, std::string_view text) const {
  std::vector<int32_t> ids = tokenizer.encode_target(text);
  if (first >= 0) ids.insert(ids.begin(), first);
  ids.push_back(end < 0 ? tokenizer.eos_id() : end);
  return ids;
}

SkippedPairs read_parallel_corpus(const std::vector<std::filesystem::path>& source_files,
                                  const std::vector<std::filesystem::path>& target_files, const Tokenizer& source,
                                  const Tokenizer& target, const ParallelCorpusOptions& options, const TakePair& take) {
  if (options.max_tokens < 1) fail<ConfigError>("max_tokens = {} is below 1", options.max_tokens);
  if (source_files.empty()) fail<ConfigError>("a parallel corpus needs at least one source file");
  if (source_files.size() != target_files.size())
    fail<ConfigError>("there are {} source files but {} target files", source_files.size(), target_files.size());
  if (!options.alignments.empty() && options.alignments.size() != source_files.size())
    fail<ConfigError>("there are {} source files but {} files of alignments", source_files.size(),
                      options.alignments.size());
  SkippedPairs skipped;
  int64_t taken = 0, lines = 0;
  std::vector<TextPair> pairs;
  for (size_t file = 0; file < source_files.size(); ++file) {
    Readers readers(source_files[file], target_files[file],
                    options.alignments.empty() ? nullptr : &options.alignments[file]);
    int64_t reported = 0;
    while (read_block(readers, options.held_out, lines, pairs)) {
      encode_block(pairs, source, target, options, skipped, [&](ParallelExample&& example) {
        ++taken;
        take(std::move(example));
      });
      const int64_t read = readers.bytes_read();
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
