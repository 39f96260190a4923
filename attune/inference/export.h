#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/base/execution.h"

namespace [[gnu::visibility("default")]] attune {

struct ExportOptions {
  std::optional<ProductPrecision> precision = {};  // of the tensors; none: as they are stored
  /// The model_type to write ("llama"); "": that of the first family that computes the same. If this is given, a folder
  /// of the hub is written anew, with current names.
  std::string family = "";
  int64_t shard_bytes = int64_t{5} * 1000 * 1000 * 1000;  // larger models are written in several files
  /// Called before each tensor and at the end; when it throws nothing is left.
  std::function<void()> before_each = {};
};

struct ExportedModel {
  std::string family;      // model_type of the config.json that was written
  std::string class_name;  // of transformers
  int64_t parameters = 0;
  int64_t bytes = 0;                       // of the tensors
  std::vector<std::string> left_out = {};  // a line for each setting that has no equivalent; none changes a logit
};

/// Writes a model folder as on the Hugging Face hub, so that `transformers` computes the same with it: config.json,
/// model.safetensors or its shards, generation_config.json and the tokenizer. Of a folder of the hub, without `family`,
/// the tensors are written as they are, and other files are copied. `out` may be an empty folder; it is written whole
/// or not at all. Throws FileError, also when `out` has files; ConfigError naming the field of a model without an
/// equivalent, and for a folder that quantize_model_folder() wrote.
ExportedModel export_model_folder(const std::filesystem::path& model, const std::filesystem::path& out,
                                  const ExportOptions& options = {});

}  // namespace attune
