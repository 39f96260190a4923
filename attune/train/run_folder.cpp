#include "attune/train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"
#include "attune/base/temporary.h"
#include "attune/io/checkpoint.h"
#include "attune/io/json_file.h"
#include "attune/text/tokenizer_files.h"
#include "attune/train/tokenizers.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.toml";
constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kFiles = "files";
constexpr uint64_t kMaxListBytes = uint64_t{1} << 20;
constexpr const char* kNewTokenizers = "new-tokenizers";  // of a temporary folder

// What a run writes, the tokenizers aside.
constexpr std::array kWritten = {kConfig, "metrics.jsonl", "samples.jsonl", kCheckpoints, "best", "model"};

std::vector<std::string> names_of_a_run() {
  std::vector<std::string> names = all_tokenizer_files();
  names.insert(names.end(), kWritten.begin(), kWritten.end());
  return names;
}

std::vector<std::string> names_of_leftovers() {
  std::vector<std::string> names = names_of_a_run();
  for (const char* name : {kRunFile, kLearningText, kNewTokenizers}) names.emplace_back(name);
  return names;
}

bool is_own_leftover(const std::string& name) {
  const std::vector<std::string> names = names_of_leftovers();
  return std::ranges::find(names, target_of_temporary(name)) != names.end();
}

bool has_any_checkpoint(const fs::path& folder) {
  const CheckpointFolder checkpoints(folder / kCheckpoints, 0);
  std::error_code ignored;
  return fs::is_directory(folder / kCheckpoints, ignored) &&
         std::ranges::any_of(checkpoints.steps(), [&](int64_t step) { return is_checkpoint(checkpoints.file(step)); });
}

// The list of run.json; none where the file is not there or is something else. Throws FileError when it cannot be read.
std::optional<std::map<std::string, std::vector<std::string>>> read_written(const fs::path& folder) {
  const fs::path file = folder / kRunFile;
  if (!is_there_or_link(file)) return std::nullopt;
  const std::string text = read_file(file, kMaxListBytes);
  try {
    const Json json = parse_json(text, file.string());
    if (!json.is_object() || json.size() != 1 || !json.contains(kFiles) || !json[kFiles].is_object())
      return std::nullopt;
    return json[kFiles].get<std::map<std::string, std::vector<std::string>>>();
  } catch (const FileError&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

bool is_empty_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error)) && fs::is_empty(path, error) && !error;
}

[[noreturn]] void refuse(const fs::path& path) {
  fail<ConfigError>("{}: is not as a run has written it, and the run would replace it: move it to another folder",
                    path.string());
}

// Folders that were made, the innermost first. One that is not empty stays.
void remove_folders(const std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const fs::path& folder : folders) fs::remove(folder, ignored);
}

// The folders that make_directories() would make, the innermost first.
std::vector<fs::path> missing_folders(fs::path folder) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  folder = fs::absolute(folder, ignored).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at the end
  for (; !folder.empty() && !is_there_or_link(folder); folder = folder.parent_path()) folders.push_back(folder);
  return folders;
}

// Returns the folder; makes it where there is none. Throws ConfigError unless it is a run or empty. Hidden files, the
// lock and what a killed start has left do not count.
const fs::path& checked(const fs::path& folder) {
  if (has_any_checkpoint(folder) || read_written(folder)) return folder;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') || name == kLockFile || is_own_leftover(name)) continue;
    if (name == kCheckpoints && is_empty_folder(entry->path())) continue;
    fail<ConfigError>("{}: has other files in it ({}): a run needs an empty folder, or a new one", folder.string(),
                      name);
  }
  make_directories(folder);
  return folder;
}

// Locks the folder, which checked() makes; where that fails, what it made is removed.
FolderLock locked(const fs::path& folder, const std::vector<fs::path>& made) {
  try {
    return FolderLock(checked(folder));
  } catch (...) {
    remove_folders(made);
    throw;
  }
}

}  // namespace

RunFolder::RunFolder(const fs::path& folder)
    : folder_(folder), made_(missing_folders(folder)), lock_(locked(folder, made_)) {
  try {
    open();
  } catch (...) {  // there is no destructor of what was never whole
    remove_made();
    throw;
  }
}

void RunFolder::open() {
  for (const std::string& name : names_of_leftovers()) remove_leftovers(folder_, name);
  for (const char* part : {"best", "model", kCheckpoints}) remove_leftovers(folder_ / part);
  has_checkpoint_ = has_any_checkpoint(folder_);
  if (auto list = read_written(folder_)) {
    files_ = std::move(*list);
    check();
  } else if (has_checkpoint_) {
    if (is_there_or_link(folder_ / kRunFile))
      fail<ConfigError>("{}: is not the list of files that a run has written", (folder_ / kRunFile).string());
    adopt();
  }
}

RunFolder::~RunFolder() {
  if (!writes_) remove_made();
}

void RunFolder::remove_made() {
  if (!lock_.made()) return;
  lock_.remove();
  remove_folders(made_);
}

void RunFolder::refuse_checkpoints() const {
  if (!CheckpointFolder(folder_ / kCheckpoints, 0).steps().empty())
    fail<ConfigError>("{}: has checkpoints of an earlier run: use --resume to go on, or another folder",
                      folder_.string());
}

void RunFolder::check_is_there() const {
  if (!lock_.has_folder())
    fail<FileError>("{}: the folder of this run is gone: it was removed or renamed while the run was training",
                    folder_.string());
}

bool RunFolder::is_own(const std::string& name) const {
  return files_.contains(name);
}

bool RunFolder::has_been_changed(const std::string& name) const {
  const Digests& digests = files_.at(name);
  return !digests.empty() && is_there_or_link(folder_ / name) &&
         std::ranges::find(digests, sha256_of_file(folder_ / name)) == digests.end();
}

// For a run of an earlier version, which has no run.json: files with the names that a run writes are taken for its own,
// except config.toml, which people write too.
void RunFolder::adopt() {
  const std::vector<std::string> tokenizers = all_tokenizer_files();
  for (const std::string& name : names_of_a_run()) {
    if (name == kConfig || !is_there(folder_ / name)) continue;
    const bool lasts = std::ranges::find(tokenizers, name) != tokenizers.end();
    files_[name] = lasts ? Digests{sha256_of_file(folder_ / name)} : Digests{};
  }
}

// A run with a checkpoint keeps its tokenizers and sets a changed config.toml aside.
void RunFolder::check() const {
  const std::vector<std::string> tokenizers = all_tokenizer_files();
  for (const std::string& name : names_of_a_run()) {
    if (!is_there_or_link(folder_ / name)) continue;
    if (!is_own(name) && name == kCheckpoints && is_empty_folder(folder_ / name)) continue;
    if (!is_own(name) && has_checkpoint_ && std::ranges::find(tokenizers, name) != tokenizers.end()) continue;
    if (!is_own(name) || (!has_checkpoint_ && has_been_changed(name))) refuse(folder_ / name);
  }
}

void RunFolder::write_list() const {
  Json files = Json::object();
  for (const auto& [name, digests] : files_) files[name] = digests;
  write_json_file(folder_ / kRunFile, Json{{kFiles, files}});
}

void RunFolder::own(const std::string& name) {
  check_is_there();
  if (!is_own(name) && is_there_or_link(folder_ / name) && !is_empty_folder(folder_ / name)) refuse(folder_ / name);
  writes_ = true;
  if (is_own(name)) return;
  files_[name] = {};
  write_list();
}

// The digest is in the list before the file is there, so that a run that is killed in between knows it again.
void RunFolder::own(const std::string& name, const std::string& digest) {
  Digests digests = {digest};
  if (is_there_or_link(folder_ / name)) {
    const std::string present = sha256_of_file(folder_ / name);
    if (present != digest && (!is_own(name) || has_been_changed(name))) refuse(folder_ / name);
    if (present != digest) digests.push_back(present);
  }
  writes_ = true;
  if (is_own(name) && files_.at(name) == digests) return;
  files_[name] = digests;
  write_list();
}

void RunFolder::remove_unfinished() {
  if (is_own(kCheckpoints)) return;  // it had some, which somebody has taken away
  for (const char* name : {"metrics.jsonl", "samples.jsonl", "best"}) {
    std::error_code error;
    if (is_own(name)) fs::remove_all(folder_ / name, error);
    if (error) fail<FileError>("cannot remove {}: {}", (folder_ / name).string(), error.message());
  }
}

fs::path RunFolder::write(const std::string& name, std::string_view text) {
  const fs::path path = folder_ / name;
  const std::string digest = sha256(text);
  fs::path aside;
  if (is_there_or_link(path) && sha256_of_file(path) != digest && (!is_own(name) || has_been_changed(name))) {
    aside = path.string() + ".changed";
    for (int n = 2; is_there_or_link(aside); ++n) aside = fmt::format("{}.changed.{}", path.string(), n);
    std::error_code error;
    fs::rename(path, aside, error);
    if (error) fail<FileError>("cannot rename {}: {}", path.string(), error.message());
  }
  own(name, digest);
  write_file(path, text);
  return aside;
}

void RunFolder::save_tokenizers(const std::function<void(const fs::path& folder)>& save) {
  const AtomicFolder scratch(folder_ / kNewTokenizers);  // never committed
  save(scratch.temporary());
  for (const std::string& name : all_tokenizer_files()) {
    const fs::path from = scratch.temporary() / name, to = folder_ / name;
    std::error_code error;
    if (is_there(from)) {
      own(name, sha256_of_file(from));
      make_directories(to.parent_path());  // additional_chat_templates, of one of them
      fs::rename(from, to, error);
    } else if (is_own(name)) {
      fs::remove(to, error);
    }
    if (error) fail<FileError>("cannot replace {}: {}", to.string(), error.message());
  }
}

}  // namespace attune
