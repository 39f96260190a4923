#pragma once
// A tokenizer of Llama's kind, for which a character that its vocabulary lacks is a run of bytes, <0xE2>.

#include <filesystem>
#include <memory>

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"
#include "attune/text/tokenizer.h"
#include "tests/support/paths.h"

namespace attune {

/// Writes its files into the folder, which has to stay as long as the tokenizer is saved.
inline std::unique_ptr<Tokenizer> write_tokenizer_with_bytes(const std::filesystem::path& folder) {
  Json json = read_json_file(source_dir() / "tests/text/data/llama.json");
  Json special = Json::array();  // without the bytes, which would be no text
  for (const Json& token : json["added_tokens"])
    if (token["id"] < 3) special.push_back(token);
  json["added_tokens"] = special;
  make_directories(folder);
  write_json_file(folder / "tokenizer.json", json);
  write_json_file(folder / "tokenizer_config.json",
                  Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
  return load_tokenizer(folder);
}

}  // namespace attune
