#pragma once
// Small models of the repository that a test changes before it opens them.

#include <functional>
#include <map>

#include "attune/hub/hub_folder.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {

/// A small model of the repository whose files a test may change before it is opened.
struct ChangedFolder {
  TemporaryFolder folder;
  Json config;
  std::map<std::string, Tensor> tensors;

  explicit ChangedFolder(const std::string& name) {
    const std::filesystem::path from = source_dir() / "tests/hub/models" / name;
    config = read_json_file(from / "config.json");
    const SafetensorsReader reader(from / "model.safetensors");
    for (const std::string& tensor : reader.names()) tensors[tensor] = reader.load(tensor);
  }
  void rename(const std::function<std::string(const std::string&)>& new_name) {
    std::map<std::string, Tensor> renamed;
    for (const auto& [name, tensor] : tensors) renamed[new_name(name)] = tensor;
    tensors = std::move(renamed);
  }
  HubFolder open() const {
    write_json_file(folder / "config.json", config);
    std::vector<NamedTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back({name, tensor});
    write_safetensors(folder / "model.safetensors", list);
    return HubFolder(folder.path());
  }
  std::string refusal() const {
    return message_of<Error>([&] { open().load(LoadedWeights::mapped); });
  }
};

inline const std::vector<std::vector<int32_t>> kReadTexts = {{5, 9, 33, 7, 2, 61}, {17, 3}};

inline std::vector<float> outputs(const HubFolder& hub) {
  return model_outputs(*hub.load(LoadedWeights::mapped), packed(kReadTexts));
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace attune
