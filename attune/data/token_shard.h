#pragma once
// A part of a corpus as token ids: in memory, or in a mapped file, of which only the pages that a batch needs are read.
// docs/file-formats.md describes the file.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/file.h"
#include "attune/data/batch_sampler.h"
#include "attune/data/labelled_corpus.h"
#include "attune/data/text_stream.h"
#include "attune/data/window_sampler.h"

namespace attune {

/// What every shard of a corpus has in common.
struct ShardForm {
  int64_t sides = 1;                      // sequences of an example: 2 for a pair, source and target
  std::array<int64_t, 2> vocab = {1, 1};  // of each side: its ids are below
  int64_t labels = 0;                     // each example has a label in [0, labels); 0: none has one
  bool numbers = false;                   // every example has a number, and no label

  int64_t token_bytes() const { return vocab[0] <= 65536 && vocab[1] <= 65536 ? 2 : 4; }
  bool operator==(const ShardForm&) const = default;
};

/// Examples in memory. An example is `sides` sequences one after another; a sequence is a document of TokenDocuments.
struct TokenExamples {
  TokenDocuments sequences;        // with `seconds` where examples have two parts in one sequence
  std::vector<int32_t> labels;     // [examples], or none
  std::vector<float> values = {};  // [examples], or none; a shard has these or the labels, as its form says
};

TokenExamples examples_of(std::span<const ParallelExample> pairs);
TokenExamples examples_of(std::span<const LabelledExample> texts);

struct WrittenShard {
  int64_t bytes = 0;
  std::string sha256;  // of the file
};

/// Writes examples of the form into a file, whole or not at all. Throws FileError.
WrittenShard write_token_shard(const std::filesystem::path& file, const TokenExamples& examples, const ShardForm& form);

class TokenShard {
 public:
  /// Takes examples that are of the form.
  TokenShard(TokenExamples examples, const ShardForm& form);

  /// Maps a file and checks all of it except ids and labels, which are checked when they are read. Throws FileError
  /// that names the file and what is wrong in it.
  TokenShard(const std::filesystem::path& file, const ShardForm& form);

  int64_t examples() const { return examples_; }
  int64_t tokens() const { return offsets_.back(); }
  int64_t tokens_of_side(int64_t side) const;

  /// Sequence i has the ids [offsets[i], offsets[i + 1]).   [examples * sides + 1]
  std::span<const int64_t> offsets() const { return offsets_; }
  /// The number of tokens of a side of an example.
  int64_t length(int64_t example, int64_t side = 0) const {
    const auto at = static_cast<size_t>(example * form_.sides + side);
    return offsets_[at + 1] - offsets_[at];
  }
  /// The lengths of the examples' sides as BatchSampler takes them; 0 where there is one side. Throws DataError on a
  /// sequence that 32 bits cannot count.
  std::vector<std::pair<int32_t, int32_t>> lengths() const;

  /// Appends ids [begin, end) of a side, or a whole sequence. Throw DataError that names the shard on an id outside the
  /// vocabulary, on ids that do not exist, and on an empty sequence.
  void append(int64_t begin, int64_t end, std::vector<int32_t>& ids, int64_t side = 0) const;
  void append_sequence(int64_t example, std::vector<int32_t>& ids, int64_t side = 0) const;
  /// Throws DataError that names the shard when the label is outside of [0, labels). 0 where examples have numbers.
  int32_t label(int64_t example) const;
  /// The example's number; 0 where examples have none. Throws DataError that names the shard when it is not finite.
  float value(int64_t example) const;
  /// The place where the second part of an example of one side begins, see TokenDocuments; -1: there is none. Files
  /// have none.
  int32_t second(int64_t example) const;
  /// The number of a window's labels, from the first, that are not predicted: those before the second part.
  int32_t ignored_labels(const Window& window) const;

  const std::string& name() const { return name_; }
  /// The SHA-256 of all that the shard holds. It differs from that of the file.
  std::string sha256() const;

 private:
  void read_header();

  ShardForm form_;
  std::string name_;
  TokenExamples memory_;              // of a shard in memory
  std::unique_ptr<MappedFile> file_;  // of one in a file
  int64_t examples_ = 0;
  std::span<const int64_t> offsets_;
  std::span<const int32_t> labels_;
  std::span<const float> values_;
  std::span<const uint16_t> narrow_;  // the ids, where they are of 2 bytes,
  std::span<const int32_t> wide_;     // or of 4
};

/// Packs the chosen examples or windows, as pack() does with examples in memory, with the same errors. Reads only what
/// is chosen.
PackedBatch pack_pairs(const TokenShard& shard, std::span<const int32_t> indices, int32_t bos_id);
LabelledBatch pack_labelled(const TokenShard& shard, std::span<const int32_t> indices);
LanguageModelBatch pack_windows(const TokenShard& shard, std::span<const Window> windows);
/// The chosen sequences one after another.
TokenDocuments pack_sequences(const TokenShard& shard, std::span<const int32_t> indices);

}  // namespace attune
