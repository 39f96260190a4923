#pragma once
// Text for language models as token ids.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "attune/text/text_file.h"
#include "attune/text/text_unit.h"
#include "attune/text/tokenizer.h"

namespace attune {

struct TextStreamOptions {
  TextUnit unit = TextUnit::stream;
  TextLimits limits = {};  // line_bytes does not hold for a stream whose tokenizer keeps line ends
  /// Documents have the special tokens that the tokenizer puts around texts, and eos, in place of bos and eos. A stream
  /// begins with those that it puts in front of a text.
  bool tokenizer_frames_texts = false;
  ReadProgress on_read = {};
};

/// Documents one after another. Document i has the ids [offsets[i], offsets[i + 1]).
struct TokenDocuments {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};  // [documents + 1]
  /// [documents], or none: the place in each document where its second part begins, as an answer after a prompt. Ids
  /// before it are read and not predicted. Where there is none, all are predicted but the first.
  std::vector<int32_t> seconds = {};

  int64_t documents() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  std::span<const int32_t> document(int64_t i) const {
    const auto begin = offsets[static_cast<size_t>(i)], end = offsets[static_cast<size_t>(i) + 1];
    return std::span(ids).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  }
};

/// Reads and encodes files, plain or gzip, in parallel; the order is kept. Memory holds ids, not text.
///
/// A stream is one document. Where the tokenizer keeps line ends, it is the text exactly as it is (without a byte order
/// mark at the start of a file), with eos between two files. For other tokenizers a line end separates tokens or is
/// dropped: each line is encoded alone, an empty one too, and ends with eos.
///
/// A line or a paragraph is bos, its tokens, eos. The lines of a paragraph are joined by \n where the tokenizer keeps
/// line ends, else by a space. An answer is one line of JSON, see read_prompts().
///
/// Throws DataError that names file and line of bad text, or when there are no tokens; FileError when a file cannot be
/// read; ConfigError when there is no file, and for a stream with tokenizer_frames_texts as text_frame().
TokenDocuments load_text(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                         const TextStreamOptions& options = {});

/// The same for text larger than memory: calls a function with the ids. A line or paragraph comes at once, with
/// `ends_document`; a stream comes in pieces, all without it.
void read_text(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
               const TextStreamOptions& options,
               const std::function<void(std::span<const int32_t> ids, bool ends_document)>& take);

/// Splits off the last `fraction`: the last of several documents, or the last ids of a single one (a stream). The first
/// part has floor(n (1 - fraction)) of n. Throws ConfigError when the fraction is not between 0 and 1, DataError when a
/// part would have no document, or less than two ids of a single one.
std::pair<TokenDocuments, TokenDocuments> hold_out_last(const TokenDocuments& documents, double fraction);

}  // namespace attune
