#include "attune/text/tokenizer_files.h"

#include <array>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/settings_files.h"
#include "attune/text/huggingface/tokenizer_json.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizerFiles = {"tokenizer.model", "vocabulary.json", "tokenizer.json"};
constexpr std::array kPrefixes = {"", "source_", "target_"};  // both sides, or one each

void remove_other_tokenizers(const fs::path& folder, const fs::path& source_file, const fs::path& target_file) {
  for (const std::string& name : own_tokenizer_files()) {
    const fs::path path = folder / name;
    if (path == source_file || path == target_file) continue;
    std::error_code error;
    fs::remove(path, error);
    if (error) fail<FileError>("{}: cannot remove: {}", path.string(), error.message());
  }
}

// Files that only folders from Hugging Face's hub have, the best first.
constexpr std::array kHubFiles = {"sentencepiece.bpe.model", "spiece.model", "vocab.json", "vocab.txt"};
// What stands beside one of them, or beside tokenizer.json or tokenizer.model.
constexpr std::array kFilesBeside = {huggingface::kSettingsFiles[0],
                                     huggingface::kSettingsFiles[1],
                                     huggingface::kSettingsFiles[2],
                                     huggingface::kChatTemplate,
                                     huggingface::kToolTemplate,
                                     "merges.txt",
                                     "source.spm",
                                     "target.spm"};

bool is_hugging_face(const fs::path& json) {
  const MappedFile file(json);
  const auto bytes = file.bytes();
  return huggingface::is_tokenizer_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The tokenizer file with this prefix, or an empty path. Throws FileError when there are two.
fs::path find(const fs::path& folder, const std::string& prefix) {
  const fs::path json = folder / (prefix + "tokenizer.json");
  if (is_there(json) && is_hugging_face(json)) return json;
  fs::path found;
  for (const char* name : kTokenizerFiles) {
    const fs::path path = folder / (prefix + name);
    if (!is_there_or_link(path)) continue;
    if (!found.empty())
      fail<FileError>("{}: has both {} and {}", folder.string(), found.filename().string(), path.filename().string());
    found = path;
  }
  for (const char* name : kHubFiles)
    if (found.empty() && prefix.empty() && is_there(folder / name)) found = folder / name;
  return found;
}

}  // namespace

std::vector<std::string> own_tokenizer_files() {
  std::vector<std::string> names;
  for (const std::string prefix : kPrefixes)
    for (const char* name : kTokenizerFiles) names.push_back(prefix + name);
  return names;
}

std::vector<std::string> all_tokenizer_files() {
  std::vector<std::string> names = own_tokenizer_files();
  for (const std::string prefix : {kPrefixes[1], kPrefixes[2]})
    for (const char* name : huggingface::kSettingsFiles) names.push_back(prefix + name);
  names.insert(names.end(), kHubFiles.begin(), kHubFiles.end());
  names.insert(names.end(), kFilesBeside.begin(), kFilesBeside.end());
  return names;
}

fs::path find_tokenizer(const fs::path& folder) {
  return find(folder, kPrefixes[0]);
}

TokenizerFiles find_tokenizers(const fs::path& folder) {
  if (const fs::path shared = find_tokenizer(folder); !shared.empty()) return {shared, shared};
  const TokenizerFiles files{find(folder, kPrefixes[1]), find(folder, kPrefixes[2])};
  if (files.source.empty() || files.target.empty())
    fail<FileError>(
        "{}: needs {}, or one for each side: source_tokenizer.model or source_vocabulary.json, and the same for "
        "target_",
        folder.string(), kTokenizerFileNames);
  return files;
}

TokenizerPair load_tokenizers(const TokenizerFiles& files) {
  const std::shared_ptr<const Tokenizer> source = load_tokenizer(files.source);
  if (files.source == files.target) return {source, source};
  return {source, load_tokenizer(files.target)};
}

void check_can_be_one_of_two(std::string_view name, const Tokenizer& tokenizer) {
  if (!tokenizer.can_be_one_of_two())
    fail<ConfigError>(
        "{}: a folder holds two different tokenizers only as tokenizer.json, vocabulary.json or plain SentencePiece "
        "models; save_pretrained() of transformers writes a tokenizer.json",
        name);
}

void save_tokenizers(const fs::path& folder, const Tokenizer& source, const Tokenizer& target) {
  const bool shared = &source == &target;
  if (!shared)
    for (const Tokenizer* side : {&source, &target}) check_can_be_one_of_two(side->file_name(), *side);
  const fs::path source_file = folder / (kPrefixes[shared ? 0 : 1] + source.file_name());
  const fs::path target_file = folder / (kPrefixes[shared ? 0 : 2] + target.file_name());
  source.save(source_file);
  if (!shared) target.save(target_file);
  remove_other_tokenizers(folder, source_file, target_file);
}

}  // namespace attune
