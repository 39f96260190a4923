#include "attune/inference/languages.h"

#include "attune/base/fail.h"

namespace attune {
namespace {

// A special token without another meaning.
bool is_language(const Tokenizer& tokenizer, int32_t id) {
  const SpecialIds& s = tokenizer.special_ids();
  for (const int32_t other : {s.pad, s.unk, s.bos, s.eos, s.mask, s.cls, s.sep})
    if (id == other) return false;
  return tokenizer.is_special_token(id);
}

bool has_languages(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (is_language(tokenizer, id)) return true;
  return false;
}

}  // namespace

int32_t language_token(const Tokenizer& tokenizer, const char* option, const std::string& language) {
  const int32_t plain = tokenizer.token_id(language), marked = tokenizer.token_id("__" + language + "__");
  if (plain >= 0 && is_language(tokenizer, plain)) return plain;
  if (marked >= 0) return marked;
  if (plain >= 0 && !has_languages(tokenizer)) return plain;
  fail<ConfigError>("{}: the vocabulary has no token for the language \"{}\"", option, language);
}

std::vector<int32_t> framed_source(const Tokenizer& tokenizer, std::string_view text, int32_t language, int32_t end) {
  std::vector<int32_t> ids = tokenizer.encode_for_model(text).ids;
  if (language < 0) return ids;
  bool replaced = false;
  const auto replace = [&](auto first, auto last) {  // among the special tokens at one end
    for (; first != last && tokenizer.is_special_token(*first); ++first) {
      if (!is_language(tokenizer, *first)) continue;
      *first = language;
      replaced = true;
    }
  };
  replace(ids.begin(), ids.end());
  replace(ids.rbegin(), ids.rend());
  if (replaced) return ids;
  ids = tokenizer.encode(text);
  ids.insert(ids.begin(), language);
  ids.push_back(end);
  return ids;
}

void set_target_language(GenerationConfig& generation, const Tokenizer& tokenizer, int32_t language) {
  const auto start = static_cast<int32_t>(generation.start_token);
  if (start >= 0 && start < tokenizer.vocab_size() && is_language(tokenizer, start)) {
    generation.start_token = language;
  } else {
    generation.forced_first_token = language;
  }
}

}  // namespace attune
