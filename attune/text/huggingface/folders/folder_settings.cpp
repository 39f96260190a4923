#include "attune/text/huggingface/folders/folder_settings.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace attune::huggingface {
namespace {

using nlohmann::json;

// Calls use(step) for each step of this type: the part itself, or those of sequences, which are under `steps`.
template <class Use>
void for_each_step(json& part, const char* type, const char* steps, const Use& use) {
  if (!part.is_object()) return;
  const auto found = part.find("type");
  if (found == part.end()) return;
  if (*found == type) use(part);
  const auto inner = part.find(steps);
  if (*found != "Sequence" || inner == part.end() || !inner->is_array()) return;
  for (json& step : *inner) for_each_step(step, type, steps, use);
}

void put_flag(const TokenizerConfig& config, const char* field, json& step, const char* name) {
  const auto found = config.values.find(field);
  if (found != config.values.end() && !found->is_null()) step[name] = config.flag(field, false);
}

// Tokens that can be looked up by their text. Of several with one text the last one is found.
class TokenList {
 public:
  explicit TokenList(std::vector<AddedToken>& tokens) : tokens_(tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) places_[tokens[i].content] = i;
  }
  AddedToken* find(const std::string& content) {
    const auto found = places_.find(content);
    return found == places_.end() ? nullptr : &tokens_[found->second];
  }
  void add(AddedToken token) {
    places_[token.content] = tokens_.size();
    tokens_.push_back(std::move(token));
  }
  void add_special(const AddedToken& token) {
    if (AddedToken* const known = find(token.content)) {
      known->special = true;
    } else {
      add(token);
    }
  }

 private:
  std::vector<AddedToken>& tokens_;
  std::unordered_map<std::string, size_t> places_;
};

void add_missing(const TokenizerConfig& config, TokenList& list) {
  for (const AddedToken& token : config.named) list.add_special(token);
  for (const AddedToken& token : config.extra)
    if (list.find(token.content) == nullptr) list.add(token);
}

}  // namespace

void put_fields(const TokenizerClass& type, const TokenizerConfig& config, json& file) {
  if (type.is_bert && file.contains("normalizer"))
    for_each_step(file["normalizer"], "BertNormalizer", "normalizers", [&](json& step) {
      put_flag(config, "do_lower_case", step, "lowercase");
      put_flag(config, "tokenize_chinese_chars", step, "handle_chinese_chars");
      put_flag(config, "strip_accents", step, "strip_accents");
    });
  if (type.has_prefix_space && file.contains("pre_tokenizer"))
    for_each_step(file["pre_tokenizer"], "ByteLevel", "pretokenizers",
                  [&](json& step) { put_flag(config, "add_prefix_space", step, "add_prefix_space"); });
}

void add_missing_tokens(const TokenizerConfig& config, std::vector<AddedToken>& tokens) {
  TokenList list(tokens);
  add_missing(config, list);
}

void add_folder_tokens(const TokenizerClass* type, const TokenMap& vocabulary, TokenizerConfig& config,
                       std::vector<AddedToken>& tokens) {
  TokenList list(tokens);
  for (const AddedToken& token : config.added) {
    AddedToken* const known = list.find(token.content);
    if (known == nullptr) {
      list.add(token);
    } else if (config.has_decoder) {
      // A class builds its tokenizer from what the folder says. Without one, the folder adds to the tokenizer of the
      // file, whose special tokens stay special.
      const bool special = token.special || (type == nullptr && known->special);
      *known = token;
      known->special = special;
    }
  }
  for (size_t i = 0; type != nullptr && i < kSpecialTokens.size(); ++i) {
    const char* const content = type->tokens[i];
    if (content == nullptr || config.says(kSpecialTokens[i].field)) continue;
    if (list.find(content) == nullptr && vocabulary.find(content) < 0) continue;
    config.names.*kSpecialTokens[i].name = content;
    list.add_special({.content = content, .normalized = false, .special = true});
  }
  add_missing(config, list);
}

}  // namespace attune::huggingface
