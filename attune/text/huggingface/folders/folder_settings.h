#pragma once
// What tokenizer_config.json, and the class that reads it, change of a tokenizer.json beside it.

#include <nlohmann/json.hpp>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/huggingface/folders/tokenizer_class.h"
#include "attune/text/huggingface/folders/tokenizer_config.h"
#include "attune/text/huggingface/token_map.h"

namespace attune::huggingface {

/// Puts fields of tokenizer_config.json that the class reads into `file`, the values of the tokenizer.json:
/// do_lower_case, strip_accents, tokenize_chinese_chars, add_prefix_space. Throws FileError for a field that is no
/// boolean.
void put_fields(const TokenizerClass& type, const TokenizerConfig& config, nlohmann::json& file);

/// Adds tokens that are not there yet: named ones, which are special from now on, and extra ones.
void add_missing_tokens(const TokenizerConfig& config, std::vector<AddedToken>& tokens);

/// Adds what the folder says to the tokens of a tokenizer.json: tokens of "added_tokens_decoder" replace those of the
/// file, and named ones are special. Where no file of the folder names a special token, that of the class is taken if
/// the tokenizer has it, and config.names gets it. `type` may be null. `vocabulary`: the model's.
void add_folder_tokens(const TokenizerClass* type, const TokenMap& vocabulary, TokenizerConfig& config,
                       std::vector<AddedToken>& tokens);

}  // namespace attune::huggingface
