#pragma once
// What classes of transformers say of a tokenizer in their code, and which class reads a folder.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "attune/text/huggingface/folders/tokenizer_config.h"

namespace attune::huggingface {

/// Where a translation model has the language of a text, and the end: LANGUAGE text </s>, or text </s> LANGUAGE.
enum class LanguagePlace { none, first, last, first_unless_legacy };  // the last one: "legacy_behaviour" says which

/// What a class says beside the files of a folder.
struct TokenizerClass {
  std::string_view name;                                  // without "Fast"
  std::array<const char*, kSpecialTokens.size()> tokens;  // of kSpecialTokens where no file names them; null: none
  bool is_bert = false;           // do_lower_case, strip_accents and tokenize_chinese_chars are its normalizer's
  bool has_prefix_space = false;  // add_prefix_space is its pre-tokenizer's
  LanguagePlace language = LanguagePlace::none;
  const char* source_language = "";  // where "src_lang" is missing
};

/// Whether a model of this class, which has a LanguagePlace, has the language in front of a text. Throws FileError for
/// a "legacy_behaviour" that is no boolean.
bool has_language_first(const TokenizerClass& type, const TokenizerConfig& config);

/// The class with this name; null for names that are not known here, whose tokenizers are what tokenizer.json says.
const TokenizerClass* find_class(std::string_view name);

/// What config.json of a folder says about its tokenizer; "" for what it does not say.
struct ModelNames {
  std::string tokenizer_class;  // without "Fast"
  std::string model_type;
};

/// Throws FileError for a config.json that is no object in JSON. One that is missing says nothing.
ModelNames read_model_names(const std::filesystem::path& folder);

/// The name of the class that AutoTokenizer of transformers 5 takes for a folder with a tokenizer.json; "" for
/// TokenizersBackend, which does what the files say. `own`: the class that tokenizer_config.json names. `byte_level`:
/// the tokenizer.json is one of bytes, which LlamaTokenizer is not.
std::string class_for(const std::string& own, const ModelNames& model, bool byte_level);

}  // namespace attune::huggingface
