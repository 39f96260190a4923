#pragma once
// Writes folders as on the Hugging Face hub.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/hub/hub_form.h"
#include "attune/io/tensor_source.h"

namespace attune {

struct HubWriteOptions {
  std::optional<DType> dtype = {};                        // float32 or bfloat16; none: that of each tensor
  int64_t shard_bytes = int64_t{5} * 1000 * 1000 * 1000;  // the most tensor bytes of one file, unless it has one tensor
  std::function<void()> before_each = {};                 // called before each tensor
};

/// A tensor that is made when it is written.
struct HubTensor {
  std::string name;
  Shape shape;
  DType dtype;  // of read()
  std::function<Tensor()> read;
};

struct WrittenTensors {
  int64_t numbers = 0;
  int64_t bytes = 0;                // of the tensors
  std::optional<DType> dtype = {};  // of all floating-point tensors; none: they differ
};

/// Writes model.safetensors, or, where the tensors are larger than options.shard_bytes, its shards with their index.
/// Integers keep their type. No more than one shard is in memory at a time. Throws FileError.
WrittenTensors write_hub_tensors(const std::filesystem::path& folder, const std::vector<HubTensor>& tensors,
                                 const HubWriteOptions& options);

/// Writes config.json and the tensors of a model of `config`, whose form is hub_form_of(config). Then reads back what
/// the folder says; throws FileError if that is another model.
WrittenTensors write_hub_model(const std::filesystem::path& folder, Module& model, const TransformerConfig& config,
                               const HubForm& form, const HubWriteOptions& options);

/// Writes the tensors of a folder of the hub as they are, but float16 as float32 and bool as uint8; and its config.json
/// with their type.
WrittenTensors copy_hub_model(const std::filesystem::path& from, const std::filesystem::path& folder,
                              const HubWriteOptions& options);

}  // namespace attune
