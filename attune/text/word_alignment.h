#pragma once
// Which word of a sentence a word of its translation comes from.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

class Tokenizer;

/// (source word, target word), counted from 0, rising in the source and then in the target.
using WordAlignment = std::vector<std::pair<int32_t, int32_t>>;

/// The number of words of a text: what stands between spaces, tabs and line ends.
int64_t count_words(std::string_view text);

/// Returns for each token the index of its word in the decoded text, where spaces separate words. A token of only
/// spaces belongs to the word after it. Special tokens other than unk get -1, and so do all tokens of a text without
/// words.
std::vector<int32_t> words_of_tokens(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// The pairs of words whose tokens are aligned: target token t with source token alignment[t]. A token aligned with the
/// source's eos is aligned with nothing.
WordAlignment align_words(std::span<const int32_t> source_words, std::span<const int32_t> target_words,
                          std::span<const int32_t> alignment);

/// "0-0 1-2", the format of the decoder Pharaoh (Koehn 2004).
std::string pharaoh(const WordAlignment& alignment);
/// Reads such a line; the pairs may be in any order and may be repeated. Throws DataError beginning with `place`
/// ("train.align:7") for what is no pair of numbers, and for a word that the sentences do not have.
WordAlignment parse_pharaoh(std::string_view line, int64_t source_words, int64_t target_words, std::string_view place);

}  // namespace attune
