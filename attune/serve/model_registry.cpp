#include "attune/serve/model_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "attune/base/cut_text.h"
#include "attune/hub/adapter_folder.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

namespace fs = std::filesystem;

// Names, sizes and times of the files in a folder and in its subfolders.
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

// Of a model folder; of an adapter's folder, together with the model that it is for.
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

std::string fingerprint_of(const ModelConfig& config) {
  std::string all = fingerprint_of(fs::path(config.folder));
  for (const auto& [name, folder] : config.adapters) all += "\n" + fingerprint_of_files(folder);
  return all;
}

}  // namespace

ModelRegistry::ModelRegistry(const ServeConfig& config) : limits_(config.limits) {
  for (const auto& [name, model] : config.models) {
    Entry entry{.config = model};
    const Device device = model.place(name);
    entry.config.precision = choice_of(resolved(model.precision, device));
    if (model.cache_bytes == 0)
      entry.config.cache_bytes = cache_memory(device) / 2 / static_cast<int64_t>(config.models.size());
    models_.emplace(name, std::move(entry));
  }
}

ModelRegistry::~ModelRegistry() {
  stop();
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::make(const std::string& name, const Entry& entry) const {
  std::vector<std::shared_ptr<ServedModel>> models = {std::make_shared<ServedModel>(name, entry.config, limits_)};
  for (const auto& [adapter, folder] : entry.config.adapters)
    models.push_back(std::make_shared<ServedModel>(*models.front(), adapter));
  return models;
}

// Nobody else changes the entries meanwhile, so that reading them here needs no lock.
void ModelRegistry::load() {
  for (auto& [name, entry] : models_) {
    std::string fingerprint = fingerprint_of(entry.config);
    auto models = make(name, entry);
    const std::lock_guard lock(mutex_);
    entry.fingerprint = std::move(fingerprint);
    entry.models = std::move(models);
  }
  ready_ = true;
}

std::vector<std::string> ModelRegistry::reload(const std::atomic<bool>& stop) {
  std::vector<std::string> lines;
  for (auto& [name, entry] : models_) {
    if (stop) break;
    std::string fingerprint = fingerprint_of(entry.config);
    if (fingerprint == entry.fingerprint) continue;
    try {
      auto models = make(name, entry);
      const std::lock_guard lock(mutex_);
      replaced_.insert(replaced_.end(), entry.models.begin(), entry.models.end());
      entry.models = std::move(models);
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
  bool known = false;
  for (const auto& [own, entry] : models_) {
    known = known || own == name || entry.config.adapters.contains(name);
    for (const auto& model : entry.models)
      if (model->name() == name) return model;
  }
  if (known) throw HttpError(503, "the model is not loaded yet", "", "loading");
  throw HttpError(404, "there is no model \"" + cut_text(name, 200) + "\"", "model", "model_not_found");
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> models;
  for (const auto& [name, entry] : models_) models.insert(models.end(), entry.models.begin(), entry.models.end());
  return models;
}

std::vector<std::shared_ptr<ServedModel>> ModelRegistry::bases() const {
  auto models = all();
  std::erase_if(models, [](const auto& model) { return !model->adapter().empty(); });
  return models;
}

// Models are freed here, never by their last request: that runs on the model's own thread, for whose end the destructor
// waits.
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
