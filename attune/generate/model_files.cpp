#include "attune/generate/model_files.h"

#include <array>
#include <string>
#include <system_error>

#include "attune/base/file.h"
#include "attune/io/json_file.h"
#include "attune/io/model_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizerFiles = {"tokenizer.model", "tokenizer.json"};
constexpr std::array kPrefixes = {"", "source_", "target_"};  // both sides, or one each

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

void remove_other_tokenizers(const fs::path& folder, const fs::path& source_file, const fs::path& target_file) {
  for (const std::string prefix : kPrefixes) {
    for (const char* name : kTokenizerFiles) {
      const fs::path path = folder / (prefix + name);
      if (path == source_file || path == target_file) continue;
      std::error_code error;
      fs::remove(path, error);
      if (error) fail<FileError>("{}: cannot remove: {}", path.string(), error.message());
    }
  }
}

// The tokenizer file with this prefix, or an empty path. Throws FileError when there are two.
fs::path find_tokenizer(const fs::path& folder, const std::string& prefix) {
  fs::path found;
  for (const char* name : kTokenizerFiles) {
    const fs::path path = folder / (prefix + name);
    if (!is_there(path)) continue;
    if (!found.empty())
      fail<FileError>("{}: has both {} and {}", folder.string(), found.filename().string(), path.filename().string());
    found = path;
  }
  return found;
}

void check_vocab(const std::string& where, const Tokenizer& tokenizer, const char* field, int64_t vocab) {
  if (tokenizer.vocab_size() != vocab)
    fail<ConfigError>("{}: has {} tokens, but the model has {} = {}", where, tokenizer.vocab_size(), field, vocab);
}

void load_tokenizers(const fs::path& folder, const TransformerConfig& config, ModelFiles& files) {
  const fs::path shared = find_tokenizer(folder, kPrefixes[0]);
  const fs::path source = shared.empty() ? find_tokenizer(folder, kPrefixes[1]) : shared;
  const fs::path target = shared.empty() ? find_tokenizer(folder, kPrefixes[2]) : shared;
  if (source.empty() || target.empty())
    fail<FileError>(
        "{}: needs tokenizer.model or tokenizer.json, or one for each side: source_tokenizer.* and target_tokenizer.*",
        folder.string());
  files.source_tokenizer = load_tokenizer(source);
  files.target_tokenizer = shared.empty() ? load_tokenizer(target) : files.source_tokenizer;
  check_vocab(source.string(), *files.source_tokenizer, "source_vocab", config.source_vocab);
  check_vocab(target.string(), *files.target_tokenizer, "target_vocab", config.target_vocab);
}

GenerationConfig read_generation_config(const fs::path& path) {
  GenerationConfig config;
  if (!is_there(path)) return config;
  read_fields(read_json_file(path), config, path.string());
  try {
    config.validate();
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", path.string(), error.what());
  }
  return config;
}

}  // namespace

void check_vocabularies(const Transformer& model, const Tokenizer& source_tokenizer,
                        const Tokenizer& target_tokenizer) {
  check_vocab("source tokenizer", source_tokenizer, "source_vocab", model.config().source_vocab);
  check_vocab("target tokenizer", target_tokenizer, "target_vocab", model.config().target_vocab);
}

void save_model_folder(const fs::path& folder, Transformer& model, const Tokenizer& source_tokenizer,
                       const Tokenizer& target_tokenizer, const GenerationConfig& generation) {
  generation.validate();
  check_vocabularies(model, source_tokenizer, target_tokenizer);
  const bool shared = &source_tokenizer == &target_tokenizer;
  const fs::path source_file = folder / (kPrefixes[shared ? 0 : 1] + source_tokenizer.file_name());
  const fs::path target_file = folder / (kPrefixes[shared ? 0 : 2] + target_tokenizer.file_name());

  make_directories(folder);
  write_model_config(folder, model.config());
  save_parameters(folder / kParameterFile, model);
  write_json_file(folder / kGenerationConfigFile, write_fields(generation));
  source_tokenizer.save(source_file);
  if (!shared) target_tokenizer.save(target_file);
  remove_other_tokenizers(folder, source_file, target_file);
}

ModelFiles load_model_folder(const fs::path& folder) {
  const TransformerConfig config = read_model_config(folder);
  check_parameter_file(folder, config);
  ModelFiles files;
  load_tokenizers(folder, config, files);
  files.generation = read_generation_config(folder / kGenerationConfigFile);
  files.model = build_transformer(config);
  load_parameters(folder / kParameterFile, *files.model);
  set_evaluation(*files.model);
  return files;
}

}  // namespace attune
