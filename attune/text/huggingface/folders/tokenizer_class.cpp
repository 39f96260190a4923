#include "attune/text/huggingface/folders/tokenizer_class.h"

#include <algorithm>

namespace attune::huggingface {
namespace {

using Tokens = std::array<const char*, kSpecialTokens.size()>;  // bos, eos, unk, sep, pad, cls, mask

constexpr Tokens kBertTokens = {nullptr, nullptr, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Tokens kAlbertTokens = {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"};
constexpr Tokens kMpnetTokens = {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kFairseqTokens = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kMBart50Tokens = {nullptr, "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kM2M100Tokens = {"<s>", "</s>", "<unk>", "</s>", "<pad>", nullptr, nullptr};
constexpr Tokens kT5Tokens = {nullptr, "</s>", "<unk>", nullptr, "<pad>", nullptr, nullptr};
constexpr Tokens kLlamaTokens = {"<s>", "</s>", "<unk>", nullptr, nullptr, nullptr, nullptr};
constexpr Tokens kGemmaTokens = {"<bos>", "<eos>", "<unk>", nullptr, "<pad>", nullptr, "<mask>"};
constexpr const char* kEndOfText = "<|endoftext|>";
constexpr Tokens kGpt2Tokens = {kEndOfText, kEndOfText, kEndOfText, nullptr, nullptr, nullptr, nullptr};
constexpr Tokens kGptNeoXTokens = {kEndOfText, kEndOfText, kEndOfText, nullptr, "<|padding|>", nullptr, nullptr};
constexpr Tokens kQwen2Tokens = {nullptr, kEndOfText, kEndOfText, nullptr, kEndOfText, nullptr, nullptr};

// As of transformers 5.24. Several names are aliases there.
constexpr std::array kClasses = std::to_array<TokenizerClass>({
    {.name = "BertTokenizer", .tokens = kBertTokens, .is_bert = true},
    {.name = "DistilBertTokenizer", .tokens = kBertTokens, .is_bert = true},
    {.name = "ElectraTokenizer", .tokens = kBertTokens, .is_bert = true},
    {.name = "MobileBertTokenizer", .tokens = kBertTokens, .is_bert = true},
    {.name = "MPNetTokenizer", .tokens = kMpnetTokens, .is_bert = true},
    {.name = "AlbertTokenizer", .tokens = kAlbertTokens},
    {.name = "RobertaTokenizer", .tokens = kFairseqTokens, .has_prefix_space = true},
    {.name = "BartTokenizer", .tokens = kFairseqTokens, .has_prefix_space = true},
    {.name = "LongformerTokenizer", .tokens = kFairseqTokens, .has_prefix_space = true},
    {.name = "LEDTokenizer", .tokens = kFairseqTokens, .has_prefix_space = true},
    {.name = "XLMRobertaTokenizer", .tokens = kFairseqTokens},
    {.name = "CamembertTokenizer", .tokens = kFairseqTokens},
    {.name = "MBartTokenizer", .tokens = kFairseqTokens, .language = LanguagePlace::last, .source_language = "en_XX"},
    {.name = "MBart50Tokenizer",
     .tokens = kMBart50Tokens,
     .language = LanguagePlace::first,
     .source_language = "en_XX"},
    {.name = "NllbTokenizer",
     .tokens = kFairseqTokens,
     .language = LanguagePlace::first_unless_legacy,
     .source_language = "eng_Latn"},
    {.name = "M2M100Tokenizer", .tokens = kM2M100Tokens},
    {.name = "MarianTokenizer", .tokens = kT5Tokens},
    {.name = "T5Tokenizer", .tokens = kT5Tokens},
    {.name = "LlamaTokenizer", .tokens = kLlamaTokens},
    {.name = "CodeLlamaTokenizer", .tokens = kLlamaTokens},
    {.name = "GemmaTokenizer", .tokens = kGemmaTokens},
    {.name = "GPT2Tokenizer", .tokens = kGpt2Tokens, .has_prefix_space = true},
    {.name = "CodeGenTokenizer", .tokens = kGpt2Tokens, .has_prefix_space = true},
    {.name = "GPTNeoXTokenizer", .tokens = kGptNeoXTokens, .has_prefix_space = true},
    {.name = "Qwen2Tokenizer", .tokens = kQwen2Tokens, .has_prefix_space = true},
});

// The class of a type of models; "": TokenizersBackend, whatever class a folder names.
struct ModelType {
  std::string_view name;
  const char* tokenizer_class;
  bool always = false;  // also where a folder names another class: folders of the hub do so by mistake
};

constexpr std::array kModelTypes = std::to_array<ModelType>({
    {"albert", "AlbertTokenizer"},
    {"bart", "RobertaTokenizer"},
    {"bert", "BertTokenizer"},
    {"camembert", "CamembertTokenizer"},
    {"codegen", "GPT2Tokenizer"},
    {"distilbert", "BertTokenizer"},
    {"electra", "BertTokenizer"},
    {"gemma", "GemmaTokenizer"},
    {"gemma2", "GemmaTokenizer"},
    {"gemma3_text", "GemmaTokenizer"},
    {"gpt2", "GPT2Tokenizer"},
    {"gpt_neo", "GPT2Tokenizer"},
    {"gpt_neox", "GPTNeoXTokenizer"},
    {"gptj", "GPT2Tokenizer"},
    {"m2m_100", "M2M100Tokenizer"},
    {"marian", "MarianTokenizer"},
    {"mbart", "MBartTokenizer"},
    {"mistral", ""},
    {"mixtral", ""},
    {"mobilebert", "MobileBertTokenizer"},
    {"modernbert", ""},
    {"mpnet", "MPNetTokenizer"},
    {"mt5", "T5Tokenizer"},
    {"nllb-moe", "NllbTokenizer"},
    {"opt", "GPT2Tokenizer"},
    {"phi", "GPT2Tokenizer"},
    {"phi3", ""},
    {"qwen2", "Qwen2Tokenizer", true},
    {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},
    {"roberta", "RobertaTokenizer"},
    {"starcoder2", "GPT2Tokenizer"},
    {"t5", "T5Tokenizer"},
    {"xlm-roberta", "XLMRobertaTokenizer"},
});

}  // namespace

bool has_language_first(const TokenizerClass& type, const TokenizerConfig& config) {
  return type.language == LanguagePlace::first ||
         (type.language == LanguagePlace::first_unless_legacy && !config.flag("legacy_behaviour", false));
}

const TokenizerClass* find_class(std::string_view name) {
  const auto found = std::ranges::find(kClasses, name, &TokenizerClass::name);
  return found == kClasses.end() ? nullptr : &*found;
}

ModelNames read_model_names(const std::filesystem::path& folder) {
  TokenizerConfig model;
  model.values = read_settings(folder / "config.json");
  return {.tokenizer_class = model.tokenizer_class(), .model_type = model.text("model_type", "")};
}

std::string class_for(const std::string& own, const ModelNames& model, bool byte_level) {
  const std::string& named = own.empty() ? model.tokenizer_class : own;
  const auto type = std::ranges::find(kModelTypes, model.model_type, &ModelType::name);
  if (type == kModelTypes.end()) return named == "LlamaTokenizer" && byte_level ? "" : named;
  const std::string of_type = type->tokenizer_class;
  if (named.empty() || type->always || of_type.empty()) return of_type;
  return named == "LlamaTokenizer" && byte_level ? "" : named;
}

}  // namespace attune::huggingface
