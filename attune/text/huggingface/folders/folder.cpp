#include "attune/text/huggingface/folders/folder.h"

#include <algorithm>

#include "attune/base/file.h"
#include "attune/text/huggingface/bpe.h"
#include "attune/text/huggingface/folders/folder_settings.h"
#include "attune/text/huggingface/folders/m2m100.h"
#include "attune/text/huggingface/folders/marian_tokenizer.h"
#include "attune/text/huggingface/folders/piece_tokenizer.h"
#include "attune/text/huggingface/folders/tokenizer_class.h"
#include "attune/text/huggingface/folders/tokenizer_config.h"
#include "attune/text/huggingface/hugging_face_tokenizer.h"
#include "attune/text/huggingface/word_piece.h"
#include "attune/text/vocabulary_json.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestSequence = int64_t{1} << 30;
constexpr int64_t kLongestPadding = int64_t{1} << 20;  // every text of a batch takes so much memory

std::optional<Truncation> read_truncation(const Fields& file) {
  const nlohmann::json* value = file.find("truncation");
  if (value == nullptr) return {};
  const Fields fields(*value, file.where("truncation"));
  Truncation truncation;
  truncation.max_length = fields.number("max_length", kLongestSequence);
  const std::string strategy = fields.string("strategy", "LongestFirst");
  if (strategy == "OnlyFirst") {
    truncation.strategy = Truncation::Strategy::only_first;
  } else if (strategy == "OnlySecond") {
    truncation.strategy = Truncation::Strategy::only_second;
  } else if (strategy != "LongestFirst") {
    fields.refuse("strategy", "\"LongestFirst\", \"OnlyFirst\" or \"OnlySecond\"");
  }
  truncation.from_left = fields.string("direction", "Right") == "Left";
  return truncation;
}

std::optional<Padding> read_padding(const Fields& file) {
  const nlohmann::json* value = file.find("padding");
  if (value == nullptr) return {};
  const Fields fields(*value, file.where("padding"));
  Padding padding;
  const nlohmann::json& strategy = fields.at("strategy");
  if (strategy != "BatchLongest")
    padding.length = Fields(strategy, fields.where("strategy")).number("Fixed", kLongestPadding);
  padding.multiple_of = fields.number("pad_to_multiple_of", kLongestPadding, 1);
  padding.on_left = fields.string("direction", "Right") == "Left";
  padding.id = static_cast<int32_t>(fields.number("pad_id", 2 * static_cast<int64_t>(kMaxPieces), 0));
  padding.type_id = static_cast<int32_t>(fields.number("pad_type_id", INT32_MAX, 0));
  return padding;
}

// Adds what tokenizer_config.json says, and the files to copy when the tokenizer is saved. As in transformers, decoded
// text of BPE is not cleaned up, and all type ids are 0 where "model_input_names" lacks "token_type_ids".
void add_config(Parts& parts, const TokenizerConfig& config, const fs::path& file) {
  parts.splits_special = config.flag("split_special_tokens", false);
  parts.clean_up =
      config.flag("clean_up_tokenization_spaces", false) && dynamic_cast<const Bpe*>(parts.model.get()) == nullptr;
  const nlohmann::json inputs = config.values.value("model_input_names", nlohmann::json());
  if (inputs.is_array() && std::find(inputs.begin(), inputs.end(), "token_type_ids") == inputs.end())
    for (Template* const form : {&parts.post_processor.single, &parts.post_processor.pair})
      for (TemplatePiece& piece : *form) piece.type_id = 0;
  parts.names = config.names;
  parts.files.push_back(file);
  parts.files.insert(parts.files.end(), config.files.begin(), config.files.end());
}

std::unique_ptr<Tokenizer> load_vocab_txt(const fs::path& file) {
  TokenizerConfig config = read_tokenizer_config(file.parent_path());
  const std::string text = read_file(file, kMaxTokenizerBytes);
  TokenMap vocabulary;
  int32_t id = 0;
  for (size_t at = 0; at < text.size(); ++id) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (static_cast<size_t>(id) >= kMaxPieces)
      fail<FileError>("{}: has more than {} tokens", file.string(), kMaxPieces);
    vocabulary.insert(line, id);
    at = end + 1;
  }
  check_token_bytes(vocabulary, file.string());
  Parts parts;
  const auto special = [&](std::string& name, const char* otherwise) {
    if (name.empty()) name = otherwise;
    if (const int32_t found = vocabulary.find(name); found >= 0) {
      parts.added_tokens.push_back({.content = name, .normalized = false, .special = true});
      return found;
    }
    fail<FileError>("{}: the token {} is missing", file.string(), name);
  };
  special(config.names.pad, "[PAD]");
  special(config.names.unk, "[UNK]");
  const int32_t cls = special(config.names.cls, "[CLS]"), sep = special(config.names.sep, "[SEP]");
  if (config.names.mask.empty()) config.names.mask = "[MASK]";
  if (vocabulary.find(config.names.mask) >= 0)
    parts.added_tokens.push_back({.content = config.names.mask, .normalized = false, .special = true});
  parts.added_tokens.insert(parts.added_tokens.end(), config.added.begin(), config.added.end());
  add_missing_tokens(config, parts.added_tokens);
  BertNormalizerOptions options;
  options.lowercase = config.flag("do_lower_case", true);
  options.strip_accents = config.flag("strip_accents", options.lowercase);
  options.handle_chinese_chars = config.flag("tokenize_chinese_chars", true);
  parts.normalizer = bert_normalizer(options);
  parts.pre_tokenizer = bert_pre_tokenizer();
  parts.model = std::make_unique<WordPiece>(std::move(vocabulary), WordPieceOptions{.unknown = config.names.unk});
  parts.post_processor = surrounded_by({{cls}, {sep}, {sep}, 1});
  parts.decoder = word_piece_decoder();
  add_config(parts, config, file);
  parts.file_name = file.filename().string();
  return std::make_unique<HuggingFaceTokenizer>(std::move(parts));
}

StringList read_merges(const fs::path& file) {
  const std::string text = read_file(file, kMaxTokenizerBytes);
  StringList merges;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !(at == 0 && line.starts_with("#version"))) merges.push_back(line);
    at = end + 1;
  }
  return merges;
}

// bos and eos around texts where tokenizer_config.json asks for them, as in transformers.
PostProcessor framed(const TokenizerConfig& config, const TokenMap& vocabulary) {
  const auto ids = [&](const char* flag, const std::string& name) -> std::vector<int32_t> {
    const int32_t id = config.flag(flag, false) ? vocabulary.find(name) : -1;
    return id < 0 ? std::vector<int32_t>{} : std::vector{id};
  };
  const std::vector<int32_t> bos = ids("add_bos_token", config.names.bos), eos = ids("add_eos_token", config.names.eos);
  std::vector<int32_t> between = eos;
  between.insert(between.end(), bos.begin(), bos.end());
  return surrounded_by({bos, between, eos, 1});
}

// RoBERTa and BART put <s> and </s> around a text, GPT-2 and OPT do not. The vocabulary of OPT has these tokens too,
// but its tokenizer_config.json has the class of GPT-2 or "add_bos_token".
std::unique_ptr<Tokenizer> load_vocab_and_merges(const fs::path& file) {
  TokenizerConfig config = read_tokenizer_config(file.parent_path());
  const fs::path merges_file = file.parent_path() / "merges.txt";
  if (!is_there(merges_file))
    fail<FileError>("{}: needs merges.txt beside it (BPE), or source.spm and target.spm (Marian); none is there",
                    file.string());
  TokenMap vocabulary =
      token_map(parse_vocabulary_object(read_file(file, kMaxTokenizerBytes), file.string()), file.string());
  Parts parts;
  const bool of_gpt2 = config.tokenizer_class() == "GPT2Tokenizer" || config.values.contains("add_bos_token");
  const bool surrounded = !of_gpt2 && vocabulary.find("<s>") >= 0 && vocabulary.find("</s>") >= 0;
  const auto special = [&](std::string& name, const char* otherwise, bool lstrip = false) {
    if (name.empty()) name = otherwise;
    if (vocabulary.find(name) >= 0)
      parts.added_tokens.push_back({.content = name, .lstrip = lstrip, .normalized = false, .special = true});
  };
  special(config.names.bos, surrounded ? "<s>" : "<|endoftext|>");
  special(config.names.eos, surrounded ? "</s>" : "<|endoftext|>");
  special(config.names.unk, surrounded ? "<unk>" : "<|endoftext|>");
  if (surrounded) {
    special(config.names.pad, "<pad>");
    special(config.names.mask, "<mask>", true);
    special(config.names.cls, "<s>");
    special(config.names.sep, "</s>");
    const int32_t cls = vocabulary.find(config.names.cls), sep = vocabulary.find(config.names.sep);
    if (cls < 0 || sep < 0)
      fail<FileError>("{}: the token {} or {} is missing", file.string(), config.names.cls, config.names.sep);
    parts.post_processor = surrounded_by({{cls}, {sep, sep}, {sep}, 0});
  } else {
    if (!config.names.pad.empty()) special(config.names.pad, "");
    parts.post_processor = framed(config, vocabulary);
  }
  for (const AddedToken& token : config.added) parts.added_tokens.push_back(token);
  add_missing_tokens(config, parts.added_tokens);
  parts.pre_tokenizer = byte_level_pre_tokenizer(config.flag("add_prefix_space", false));
  parts.model = make_bpe(std::move(vocabulary), read_merges(merges_file), false, {}, merges_file.string());
  parts.decoder = byte_level_decoder();
  add_config(parts, config, file);
  parts.files.push_back(merges_file);
  parts.file_name = file.filename().string();
  return std::make_unique<HuggingFaceTokenizer>(std::move(parts));
}

// The class of a folder with a tokenizer.json. A copy of the tokenizer may stand beside another config.json, or none.
// `named` is the class that the tokenizer_config.json of the copy has to name, so that it is read as the same class; ""
// where the folder's own file says enough.
struct FolderClass {
  const TokenizerClass* type = nullptr;
  std::string named = {};
};

FolderClass class_of_folder(const fs::path& folder, const TokenizerConfig& config, bool byte_level) {
  const std::string own = config.tokenizer_class(), name = class_for(own, read_model_names(folder), byte_level);
  const TokenizerClass* const type = find_class(name);
  if (find_class(class_for(own, {}, byte_level)) == type) return {.type = type};
  return {.type = type, .named = type == nullptr ? "PreTrainedTokenizerFast" : name};
}

// transformers builds the post-processor of a translation model from "src_lang", whatever the file has. Returns nothing
// if the default language, or the end, is not in the vocabulary.
std::optional<PostProcessor> language_frame(const TokenizerClass& type, const TokenizerConfig& config,
                                            const Tokenizer& tokenizer) {
  if (type.language == LanguagePlace::none) return {};
  const std::string named = config.text("src_lang", "");
  const int32_t language = tokenizer.token_id(named.empty() ? type.source_language : named);
  if (language < 0 && !named.empty())
    fail<FileError>("{}: src_lang: \"{}\" is not in the vocabulary", (config.folder / "tokenizer_config.json").string(),
                    cut_text(named, 80));
  if (language < 0 || tokenizer.eos_id() < 0) return {};
  return around_language(language, tokenizer.eos_id(), has_language_first(type, config));
}

Parts read_parts(TokenizerJson& json, const std::string& name) {
  const Fields fields = Fields::of_file(json.values, name);
  Parts parts;
  parts.model = read_model(json, name);
  parts.added_tokens = read_added_tokens(json.values, name);
  parts.normalizer = read_normalizer(fields.find("normalizer"), fields.where("normalizer"));
  parts.pre_tokenizer = read_pre_tokenizer(fields.find("pre_tokenizer"), fields.where("pre_tokenizer"));
  parts.post_processor = read_post_processor(fields.find("post_processor"), fields.where("post_processor"));
  parts.decoder = read_decoder(fields.find("decoder"), fields.where("decoder"));
  parts.truncation = read_truncation(fields);
  parts.padding = read_padding(fields);
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view bytes, const fs::path& file) {
  const std::string name = file.string();
  TokenizerJson json = parse_tokenizer_json(bytes, name);
  TokenizerConfig config = read_tokenizer_config(file.parent_path(), settings_prefix(file));
  const bool byte_level = bytes.find("\"ByteLevel\"") != std::string_view::npos;
  const FolderClass of_folder = class_of_folder(file.parent_path(), config, byte_level);
  const TokenizerClass* const type = of_folder.type;
  if (type != nullptr) put_fields(*type, config, json.values);
  Parts parts = read_parts(json, name);
  add_folder_tokens(type, parts.model->vocabulary(), config, parts.added_tokens);
  if (!of_folder.named.empty()) parts.changed_files = config.with_class({}, of_folder.named);
  const int32_t highest = parts.post_processor.highest_id();
  add_config(parts, config, file);
  auto tokenizer = std::make_unique<HuggingFaceTokenizer>(std::move(parts));
  if (highest >= tokenizer->vocab_size())
    fail<FileError>("{}: post_processor: token {} is not in the vocabulary, which has {}", name, highest,
                    tokenizer->vocab_size());
  if (type != nullptr)
    if (auto frame = language_frame(*type, config, *tokenizer)) tokenizer->set_post_processor(std::move(*frame));
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_by_file_name(const fs::path& file) {
  const fs::path name = file.filename();
  if (name == "vocab.txt") return load_vocab_txt(file);
  if (name == "vocab.json") {
    if (is_there(file.parent_path() / "source.spm") || is_there(file.parent_path() / "target.spm"))
      return std::make_unique<MarianTokenizer>(file);
    return load_vocab_and_merges(file);
  }
  const bool is_hub_name = name == "sentencepiece.bpe.model" || name == "spiece.model";
  if (!is_hub_name && name != "tokenizer.model") return nullptr;
  const TokenizerConfig config = read_tokenizer_config(file.parent_path());
  if (!is_hub_name && config.tokenizer_class().empty()) return nullptr;
  if (is_m2m100(file, config)) return load_m2m100(file, config);
  return load_piece_tokenizer(file, config);
}

}  // namespace attune::huggingface
