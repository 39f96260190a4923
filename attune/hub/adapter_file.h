#pragma once
// The two files of an adapter in PEFT's format, which may be hostile.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "attune/hub/hub_config.h"
#include "attune/io/safetensors.h"
#include "attune/tensor/tensor.h"
#include "attune/text/huggingface/regex.h"

namespace attune {

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";  // of the names of all tensors
inline constexpr const char* kClassificationTask = "SEQ_CLS";

/// What the files hold for one of the base model's modules.
struct StoredAdapter {
  Tensor a, b;  // float32
  double scale = 1;
  std::string name = {};  // of A in the file
};

class AdapterFile {
 public:
  /// `is_classifier`: the model has a head for labels, which adapters of such a task need. Throws FileError and
  /// ConfigError naming the field that is not supported.
  AdapterFile(const std::filesystem::path& folder, bool is_classifier);

  /// The adapter of a module, which has so many inputs; its tensors are undefined where there is none. Throws FileError
  /// where they do not fit, ConfigError without "lora_alpha", and DataError where an expression of "alpha_pattern"
  /// takes too many steps.
  StoredAdapter stored(const std::string& module, int64_t in);
  /// Fills a parameter that the file has. Throws FileError where its shape is another.
  void fill(const std::string& name, const Tensor& parameter);

  double dropout() const;  // throws ConfigError unless it is from 0 to below 1
  std::string path() const { return reader_.path().string(); }
  /// Throws FileError for a tensor that neither stored() nor fill() was asked for.
  void refuse_unknown() const;

 private:
  struct AlphaPattern {
    std::unique_ptr<huggingface::Pattern> modules;  // of whole names
    double alpha;
  };

  void refuse_changed_base() const;
  Tensor load(const std::string& name);
  double alpha_of(const std::string& module) const;

  HubConfig config_;
  SafetensorsReader reader_;
  std::vector<AlphaPattern> alphas_;
  std::set<std::string> used_;
};

}  // namespace attune
