#pragma once
// Cuts documents into windows that fit a language model, and packs a batch of them.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/data/text_stream.h"

namespace attune {

/// Ids of one document: the model reads ids[begin + i] and predicts ids[begin + i + 1], for i in [0, length).
struct Window {
  int64_t begin;
  int32_t length;
  bool operator==(const Window&) const = default;
};

struct WindowSamplerOptions {
  int64_t context_length = 1024;  // predictions of a window at most
  int64_t max_tokens = 8192;      // predictions of a batch at most; a window that is longer is alone in its batch
  uint64_t seed = 1;
  bool shuffle = true;    // false: in the order of the text, the same every epoch
  void validate() const;  // throws ConfigError
};

/// Forms the batches of an epoch, a pure function of (documents, options, epoch). Every id but the first of a document
/// is predicted exactly once.
///
/// A document of more than context_length predictions is cut every context_length tokens. With `shuffle`, the first of
/// these cuts is at a random position from 1 to context_length, so that every epoch has other windows, and the order of
/// the windows is random.
class WindowSampler {
 public:
  /// Throws ConfigError, and DataError when there is nothing to predict.
  WindowSampler(const TokenDocuments& documents, const WindowSamplerOptions& options);
  /// For documents that begin and end at `offsets`, as in TokenDocuments; there may be nothing to predict.
  WindowSampler(std::vector<int64_t> offsets, const WindowSamplerOptions& options);

  /// Returns each batch as windows. Epochs count from 0.
  std::vector<std::vector<Window>> epoch(int64_t epoch) const;

 private:
  std::vector<int64_t> offsets_;  // of the documents
  WindowSamplerOptions options_;
};

/// Windows one after another, without padding. Window i has the tokens [offsets[i], offsets[i + 1]).
struct LanguageModelBatch {
  std::vector<int32_t> input;    // [tokens]
  std::vector<int32_t> offsets;  // [windows + 1], from 0 to tokens
  std::vector<int32_t> labels;   // [tokens], what follows each input

  int64_t windows() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(input.size()); }
};

/// Throws DataError when a window is empty or reaches over the end of the ids, or the tokens are more than 32 bits can
/// count.
LanguageModelBatch pack(const TokenDocuments& documents, std::span<const Window> windows);

/// A window whose labels count only from `first_label` on; the tokens before are context.
struct ScoredWindow {
  int64_t begin;
  int32_t length;
  int32_t first_label;
  bool operator==(const ScoredWindow&) const = default;
};

/// Returns windows for evaluation that advance by `stride` through each document. Every id except a document's first
/// counts exactly once (of documents with a second part, every id of that part), after the first window with more than
/// context_length - stride ids of context, as Baevski and Auli 2019 measure perplexity. stride = context_length:
/// windows that do not overlap. Throws ConfigError unless 1 <= stride <= context_length.
std::vector<ScoredWindow> sliding_windows(const TokenDocuments& documents, int64_t context_length, int64_t stride);

/// The same with `ignored` in place of the labels that do not count, as CrossEntropyOptions::ignore_index.
LanguageModelBatch pack(const TokenDocuments& documents, std::span<const ScoredWindow> windows, int32_t ignored = -1);

}  // namespace attune
