#include "attune/text/huggingface/tokenizer_class.h"

#include <algorithm>

namespace attune::huggingface {
namespace {

using Tokens = std::array<const char*, kSpecialTokens.size()>;  // bos, eos, unk, sep, pad, cls, mask

constexpr Tokens kBert = {nullptr, nullptr, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"};
constexpr Tokens kAlbert = {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"};
constexpr Tokens kMpnet = {"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kFairseq = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kMBart50 = {nullptr, "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kM2M100 = {"<s>", "</s>", "<unk>", "</s>", "<pad>", nullptr, nullptr};
constexpr Tokens kT5 = {nullptr, "</s>", "<unk>", nullptr, "<pad>", nullptr, nullptr};
constexpr Tokens kLlama = {"<s>", "</s>", "<unk>", nullptr, nullptr, nullptr, nullptr};
constexpr Tokens kGemma = {"<bos>", "<eos>", "<unk>", nullptr, "<pad>", nullptr, "<mask>"};
constexpr const char* kEndOfText = "<|endoftext|>";
constexpr Tokens kGpt2 = {kEndOfText, kEndOfText, kEndOfText, nullptr, nullptr, nullptr, nullptr};
constexpr Tokens kGptNeoX = {kEndOfText, kEndOfText, kEndOfText, nullptr, "<|padding|>", nullptr, nullptr};
constexpr Tokens kQwen2 = {nullptr, kEndOfText, kEndOfText, nullptr, kEndOfText, nullptr, nullptr};

// As of transformers 5.24. Several names are aliases there.
constexpr std::array kClasses = std::to_array<TokenizerClass>({
    {.name = "BertTokenizer", .tokens = kBert, .is_bert = true},
    {.name = "DistilBertTokenizer", .tokens = kBert, .is_bert = true},
    {.name = "ElectraTokenizer", .tokens = kBert, .is_bert = true},
    {.name = "MobileBertTokenizer", .tokens = kBert, .is_bert = true},
    {.name = "MPNetTokenizer", .tokens = kMpnet, .is_bert = true},
    {.name = "AlbertTokenizer", .tokens = kAlbert},
    {.name = "RobertaTokenizer", .tokens = kFairseq, .has_prefix_space = true},
    {.name = "BartTokenizer", .tokens = kFairseq, .has_prefix_space = true},
    {.name = "LongformerTokenizer", .tokens = kFairseq, .has_prefix_space = true},
    {.name = "LEDTokenizer", .tokens = kFairseq, .has_prefix_space = true},
    {.name = "XLMRobertaTokenizer", .tokens = kFairseq},
    {.name = "CamembertTokenizer", .tokens = kFairseq},
    {.name = "MBartTokenizer", .tokens = kFairseq, .language = LanguagePlace::last, .source_language = "en_XX"},
    {.name = "MBart50Tokenizer", .tokens = kMBart50, .language = LanguagePlace::first, .source_language = "en_XX"},
    {.name = "NllbTokenizer",
     .tokens = kFairseq,
     .language = LanguagePlace::first_unless_legacy,
     .source_language = "eng_Latn"},
    {.name = "M2M100Tokenizer", .tokens = kM2M100},
    {.name = "MarianTokenizer", .tokens = kT5},
    {.name = "T5Tokenizer", .tokens = kT5},
    {.name = "LlamaTokenizer", .tokens = kLlama},
    {.name = "CodeLlamaTokenizer", .tokens = kLlama},
    {.name = "GemmaTokenizer", .tokens = kGemma},
    {.name = "GPT2Tokenizer", .tokens = kGpt2, .has_prefix_space = true},
    {.name = "CodeGenTokenizer", .tokens = kGpt2, .has_prefix_space = true},
    {.name = "GPTNeoXTokenizer", .tokens = kGptNeoX, .has_prefix_space = true},
    {.name = "Qwen2Tokenizer", .tokens = kQwen2, .has_prefix_space = true},
});

// The class of a type of models: "" for TokenizersBackend, also where a folder names another class.
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
