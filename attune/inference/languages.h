#pragma once
// Models of many languages: tokens say which language a source is in and which its translation has.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attune/models/generation_config.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// The token of a language: "deu_Latn" (NLLB) or "de_DE" (mBART) itself, or "__de__" for "de" (M2M100). Throws
/// ConfigError, beginning with `option`, when the vocabulary has none. A token that is not special, as "de" is in many
/// vocabularies, counts only where no special token can be a language.
int32_t language_token(const Tokenizer& tokenizer, const char* option, const std::string& language);

/// What the encoder reads of a text: with the special tokens that the tokenizer puts around it. A language takes the
/// place of the language among these; where there is none, it comes first, and `end` last. `language`: -1 for none.
std::vector<int32_t> framed_source(const Tokenizer& tokenizer, std::string_view text, int32_t language, int32_t end);

/// Makes translations begin with this token. A start token that is a language is replaced by it.
void set_target_language(GenerationConfig& generation, const Tokenizer& tokenizer, int32_t language);

}  // namespace attune
