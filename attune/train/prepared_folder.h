#pragma once
// A training text that was tokenised once: index.json, shards of tokens and the tokenizers in one folder. See
// docs/file-formats.md.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attune/base/atomic_folder.h"
#include "attune/base/json_fields.h"
#include "attune/data/token_corpus.h"
#include "attune/train/config.h"

namespace attune {

/// What the examples are; each architecture reads one kind.
enum class PreparedKind {
  pairs,      // encoder_decoder: sentence pairs
  documents,  // decoder_lm: documents, or parts of a stream
  sequences,  // encoder_masked_lm: documents cut into sequences that fit the encoder
  labelled,   // encoder_classifier: labelled texts
  numbers     // encoder_classifier, for regression: texts with a number
};

template <>
struct EnumNames<PreparedKind> {
  static constexpr std::pair<PreparedKind, const char*> values[] = {{PreparedKind::pairs, "pairs"},
                                                                    {PreparedKind::documents, "documents"},
                                                                    {PreparedKind::sequences, "sequences"},
                                                                    {PreparedKind::labelled, "labelled"},
                                                                    {PreparedKind::numbers, "numbers"}};
};

PreparedKind prepared_kind(const TransformerConfig& model);

struct PreparedTokenizer {
  std::string file = {};  // beside the index
  std::string sha256 = {};
};

struct PreparedShard {
  std::string file = {};  // beside the index
  int64_t examples = -1;
  int64_t tokens = -1;  // of the source, where there are two sides
  int64_t target_tokens = 0;
  int64_t bytes = -1;
  std::string sha256 = {};
};

struct PreparedIndex {
  PreparedKind kind = PreparedKind::documents;
  int64_t source_vocab = -1, target_vocab = -1;          // the same where there is one side
  Json options = Json::object();                         // fields of [data] that shaped the examples
  std::vector<std::string> labels = {};                  // of labelled texts; for numbers, one name
  int64_t texts = -1;                                    // number of texts, before documents were cut into sequences
  int64_t skipped_long = 0, skipped_empty = 0, cut = 0;  // see CorpusReport
  std::vector<PreparedTokenizer> tokenizers = {};        // one, or the source's and the target's
  std::vector<PreparedShard> shards = {};

  ShardForm form() const;
  int64_t tokens() const;
  int64_t target_tokens() const;
  int64_t bytes() const;  // of all shards
};

/// The fields of config.data, by name, that decide what is prepared for the architecture.
Json shaping_options(const RunConfig& config);

/// Throws FileError that names the file and the field: for a key that is missing, unknown or of the wrong type, for
/// impossible numbers, and for names that lead out of the folder.
PreparedIndex read_prepared_index(const std::filesystem::path& folder);

/// Returns the shards; none is read before it is needed. Throws FileError when one is missing or has another size than
/// in the index.
TokenCorpus open_prepared(const std::filesystem::path& folder, const PreparedIndex& index);

/// Reads all shards and tokenizers; throws FileError naming the first that is not what was written. `progress` is
/// called with the bytes that were read since its last call, and may throw to end the work.
void verify_prepared(const std::filesystem::path& folder, const PreparedIndex& index,
                     const std::function<void(int64_t bytes)>& progress = {});

/// Throws FileError when the tokenizers in `folder` are not those of the index.
void check_prepared_tokenizers(const std::filesystem::path& folder, const PreparedIndex& index);

/// Writes such a folder whole or not at all: under another name beside it, which the destructor removes when commit()
/// was not called. Takes examples part by part; memory holds those of one shard.
class PreparedWriter {
 public:
  /// Throws FileError when `folder` exists.
  PreparedWriter(std::filesystem::path folder, int64_t shard_tokens);

  /// Folder for the tokenizers and for temporary files, to be written before the first example.
  const std::filesystem::path& temporary() const { return folder_.temporary(); }

  /// Takes kind, vocabularies, options and labels; the tokenizers are those in temporary().
  void begin(PreparedIndex index);

  /// Adds ids to a sequence, ends it, and ends an example, whose sequences are its sides.
  void append(std::span<const int32_t> ids);
  void end_sequence();
  void end_example();
  void end_example(int32_t label, float value);  // the index's kind says which one is written
  /// Adds ids of a stream, in which a shard may end anywhere: what follows is another document.
  void append_stream(std::span<const int32_t> ids);

  int64_t tokens() const { return tokens_; }  // of both sides, so far
  int64_t shards() const { return static_cast<int64_t>(index_.shards.size()); }

  /// Writes the last shard and the index, and gives the folder its name. The numbers are those of CorpusReport.
  PreparedIndex commit(int64_t texts, int64_t skipped_long, int64_t skipped_empty, int64_t cut);

 private:
  void write_shard();

  AtomicFolder folder_;
  int64_t shard_tokens_;
  PreparedIndex index_;
  TokenExamples examples_;  // of the shard at work
  int64_t tokens_ = 0;
};

}  // namespace attune
