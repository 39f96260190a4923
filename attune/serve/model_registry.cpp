#include "attune/serve/model_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "attune/base/process_memory.h"
#include "attune/hub/adapter_folder.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

namespace fs = std::filesystem;

// Names, sizes and times of the files of a folder and of those in it.
std::string fingerprint_of_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    files.push_back(fmt::format("{} {} {}", at->path().string(), at->file_size(ignored),
                                at->last_write_time(ignored).time_since_epoch().count()));
  }
  std::sort(files.begin(), files.end());
  std::string all = fs::weakly_canonical(folder, error).string();
  for (const std::string& file : files) all += "\n" + file;
  return all;
}

// Of an adapter's folder, with the model that it is for.
std::string fingerprint_of(const fs::path& folder) {
  std::string all = fingerprint_of_files(folder);
  std::error_code ignored;
  if (!fs::exists(folder / kAdapterConfigFile, ignored)) return all;
  try {
    return all + "\n" + fingerprint_of_files(adapter_base(folder));
  } catch (const Error&) {  // loading says what is wrong with it
    return all;
  }
}

}  // namespace

ModelRegistry::ModelRegistry(const ServeConfig& config) : most_requests_(config.limits.requests) {
  for (const auto& [name, model] : config.models) {
    Entry entry{.config = model};
    if (entry.config.cache_bytes == 0)
      entry.config.cache_bytes = process_memory_limit() / 2 / static_cast<int64_t>(config.models.size());
    models_.emplace(name, std::move(entry));
  }
}

ModelRegistry::~ModelRegistry() {
  stop();
}

std::shared_ptr<ServedModel> ModelRegistry::make(const std::string& name, const Entry& entry) const {
  return std::make_shared<ServedModel>(name, entry.config, most_requests_);
}

// Nobody else changes the entries meanwhile, so that reading them here needs no lock.
void ModelRegistry::load() {
  for (auto& [name, entry] : models_) {
    std::string fingerprint = fingerprint_of(entry.config.folder);
    std::shared_ptr<ServedModel> model = make(name, entry);
    const std::lock_guard lock(mutex_);
    entry.fingerprint = std::move(fingerprint);
    entry.model = std::move(model);
  }
  ready_ = true;
}

std::vector<std::string> ModelRegistry::reload() {
  std::vector<std::string> lines;
  for (auto& [name, entry] : models_) {
    std::string fingerprint = fingerprint_of(entry.config.folder);
    if (fingerprint == entry.fingerprint) continue;
    try {
      std::shared_ptr<ServedModel> model = make(name, entry);
      const std::lock_guard lock(mutex_);
      replaced_.push_back(std::exchange(entry.model, std::move(model)));
      entry.fingerprint = std::move(fingerprint);
      lines.push_back(name + ": loaded again");
    } catch (const std::exception& error) {
      lines.push_back(fmt::format("{}: stays as it is: {}", name, error.what()));
    }
  }
  return lines;
}

std::shared_ptr<ServedModel> ModelRegistry::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end())
    throw HttpError(404, "there is no model \"" + name.substr(0, 200) + "\"", "model", "model_not_found");
  if (found->second.model == nullptr) throw HttpError(503, "the model is not loaded yet", "", "loading");
  return found->second.model;
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const auto& [name, entry] : models_)
    if (entry.model != nullptr) models.push_back(entry.model);
  return models;
}

// A model is never freed by its last request, whose thread it would wait for.
void ModelRegistry::free_replaced() {
  std::vector<std::shared_ptr<ServedModel>> unused;
  const std::lock_guard lock(mutex_);
  for (auto& model : replaced_)
    if (model.use_count() == 1) unused.push_back(std::move(model));
  std::erase(replaced_, nullptr);
}

void ModelRegistry::stop() {
  std::vector<std::shared_ptr<ServedModel>> models = all();
  {
    const std::lock_guard lock(mutex_);
    models.insert(models.end(), replaced_.begin(), replaced_.end());
  }
  for (const auto& model : models) model->stop();
}

}  // namespace attune::serve
