#pragma once
// Prompts with answers, from which a language model learns to answer.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "attune/data/text_stream.h"

namespace attune {

/// Reads files of JSON lines, plain or gzip: {"prompt": "...", "answer": "..."}, in which other fields are passed over.
/// A document is a prompt as `attune generate` reads it (bos and its tokens, or what the tokenizer puts around texts),
/// then the tokens of the answer and eos; its second part is the answer. Where the tokenizer does not keep line ends,
/// they become spaces. Throws DataError that names file and line, FileError, and ConfigError when there is no file.
TokenDocuments read_prompts(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                            const TextStreamOptions& options = {});

/// Calls `use` with the prompt and the answer of each line of such files as they are encoded: line ends become spaces
/// unless the tokenizer keeps them. Throws DataError and FileError as read_prompts(), and ConfigError when there is no
/// file.
void read_prompt_texts(const std::vector<std::filesystem::path>& files, bool keeps_line_ends,
                       const std::function<void(const std::string& prompt, const std::string& answer)>& use);

/// The bytes of all answers of such a file. Throws DataError and FileError as read_prompts().
int64_t answer_bytes(const std::filesystem::path& file);

}  // namespace attune
