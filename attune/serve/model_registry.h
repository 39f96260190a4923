#pragma once
// The models of a server by name.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attune/serve/served_model.h"

namespace attune::serve {

/// Thread-safe, but load() and reload() are for one thread at a time.
class ModelRegistry {
 public:
  /// Loads no model yet. The configuration has to be valid.
  explicit ModelRegistry(const ServeConfig& config);
  ~ModelRegistry();

  /// Loads all models. Throws the error of the first one that cannot be loaded.
  void load();
  /// Loads each model whose folder, or the folder of one of its adapters, has changed since it was loaded. The new
  /// model then replaces the old one, which finishes its requests. Returns a line for each: what has changed, or why it
  /// stays as it is. Once `stop` is true, no further model is loaded.
  std::vector<std::string> reload(const std::atomic<bool>& stop);
  bool ready() const { return ready_; }

  /// The model or adapter of this name. Throws HttpError: 503 while models are loaded, 404 if none has this name.
  std::shared_ptr<ServedModel> find(const std::string& name) const;
  std::vector<std::shared_ptr<ServedModel>> all() const;
  /// The same without adapters.
  std::vector<std::shared_ptr<ServedModel>> bases() const;

  /// Frees models that were replaced and have no requests any more.
  void free_replaced();
  /// Ends all requests with what they have.
  void stop();

 private:
  struct Entry {
    ModelConfig config;
    std::string fingerprint = {};                           // of the folders, its adapters' too, when it was loaded
    std::vector<std::shared_ptr<ServedModel>> models = {};  // the model, and each of its adapters as a model
  };
  std::vector<std::shared_ptr<ServedModel>> make(const std::string& name, const Entry& entry) const;

  const RequestLimits limits_;
  std::atomic<bool> ready_{false};
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, Entry> models_;
  std::vector<std::shared_ptr<ServedModel>> replaced_;
};

}  // namespace attune::serve
