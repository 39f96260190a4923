#pragma once
// Folders in the Hugging Face hub's format, with what transformers computed of them. ATTUNE_HF_MODELS names another
// folder of such folders.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attune/base/json.h"
#include "attune/hub/hub_config.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/packed_tokens.h"
#include "attune/tensor/host_view.h"
#include "tests/support/largest_error.h"
#include "tests/support/paths.h"

namespace attune {

inline std::filesystem::path hub_models() {
  const char* chosen = std::getenv("ATTUNE_HF_MODELS");
  return chosen != nullptr ? chosen : source_dir() / "tests/hub/models";
}

inline std::vector<std::string> hub_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(hub_models()))
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A folder's name as the name of a test.
inline std::string hub_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

/// A config.json with these fields.
inline HubConfig config_of(const char* json) {
  return {Json::parse(json), "config.json"};
}

/// config.json of one of these folders, or expected.json.
inline Json hub_json(const std::string& name, const char* file) {
  return read_json_file(hub_models() / name / file, uint64_t{16} << 20);
}

/// The folders of hub_models() that `wanted` is true of, which is given a folder's name.
inline std::vector<std::string> hub_models_with(const std::function<bool(const std::string& name)>& wanted) {
  std::vector<std::string> names = hub_model_names();
  std::erase_if(names, [&](const std::string& name) { return !wanted(name); });
  return names;
}

/// What transformers computed: expected.safetensors and expected.json.
struct Expected {
  SafetensorsReader tensors;
  Json json;

  explicit Expected(const std::filesystem::path& folder)
      : tensors(folder / "expected.safetensors"), json(hub_json(folder.filename().string(), "expected.json")) {}

  /// The rows of `ids` where `mask` is 1: sequences without padding.
  std::vector<std::vector<int32_t>> sequences(const std::string& ids, const std::string& mask = "") const {
    const std::vector<int64_t> values = host_values<int64_t>(tensors.load(ids));
    const std::vector<int64_t> kept =
        mask.empty() ? std::vector<int64_t>(values.size(), 1) : host_values<int64_t>(tensors.load(mask));
    const auto columns = static_cast<size_t>(tensors.shape(ids)[1]);
    std::vector<std::vector<int32_t>> rows(values.size() / columns);
    for (size_t i = 0; i < values.size(); ++i)
      if (kept[i] != 0) rows[i / columns].push_back(static_cast<int32_t>(values[i]));
    return rows;
  }

  /// The rows of a tensor [batch, length, columns] at which `mask` [batch, length] is 1.
  std::vector<float> rows_of(const std::string& name, const std::string& mask) const {
    const std::vector<float> values = host_values<float>(tensors.load(name));
    const std::vector<int64_t> kept = host_values<int64_t>(tensors.load(mask));
    const size_t columns = values.size() / kept.size();
    std::vector<float> rows;
    for (size_t i = 0; i < kept.size(); ++i)
      if (kept[i] != 0)
        rows.insert(rows.end(), values.begin() + static_cast<std::ptrdiff_t>(i * columns),
                    values.begin() + static_cast<std::ptrdiff_t>((i + 1) * columns));
    return rows;
  }
};

inline PackedTokens packed(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int32_t> ids, offsets = {0};
  for (const std::vector<int32_t>& s : sequences) {
    ids.insert(ids.end(), s.begin(), s.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  return pack_tokens(ids, offsets);
}

/// LargestError::relative() of two lists; infinite where the sizes differ.
inline double relative_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  LargestError error;
  for (size_t i = 0; i < found.size(); ++i) error.add(found[i], expected[i]);
  return error.relative();
}

constexpr double kHubTolerance = 1e-4;

}  // namespace attune
