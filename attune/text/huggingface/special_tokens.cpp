#include "attune/text/huggingface/special_tokens.h"

#include <map>

#include "attune/base/file.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

void read_names(const nlohmann::json& values, const std::string& where, TokenizerConfig& config) {
  const Fields fields(values, where);
  for (const auto& [name, token] : {std::pair("pad_token", &config.pad),
                                    {"unk_token", &config.unk},
                                    {"bos_token", &config.bos},
                                    {"eos_token", &config.eos},
                                    {"mask_token", &config.mask},
                                    {"cls_token", &config.cls},
                                    {"sep_token", &config.sep}})
    if (const auto* value = fields.find(name); value != nullptr && token->empty())
      *token = read_added_token(*value, fields.where(name)).content;
}

// {"0": {"content": "<pad>", ...}, ...}
void read_added(const nlohmann::json& values, const std::string& where, TokenizerConfig& config) {
  const Fields fields(values, where);
  const auto* added = fields.find("added_tokens_decoder");
  if (added == nullptr || !added->is_object()) return;
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [id, token] : added->items())
    by_id[std::atoll(id.c_str())] = read_added_token(token, fields.where("added_tokens_decoder." + id));
  for (auto& [id, token] : by_id) config.added.push_back(std::move(token));
}

}  // namespace

bool TokenizerConfig::flag(const char* name, bool otherwise) const {
  return Fields(values, "tokenizer_config.json").boolean(name, otherwise);
}

TokenizerConfig read_tokenizer_config(const fs::path& tokenizer) {
  TokenizerConfig config;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const fs::path file = tokenizer.parent_path() / name;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    nlohmann::json values = parse_small_json(read_file(file, kMaxTokenizerBytes), file.string());
    read_names(values, file.string(), config);
    config.files.push_back(file);
    if (config.files.size() == 1 && file.filename() == "tokenizer_config.json") {
      read_added(values, file.string(), config);
      config.values = std::move(values);
    }
  }
  return config;
}

}  // namespace attune::huggingface
