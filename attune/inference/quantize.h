#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "attune/ops/linear/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

struct QuantizedModel {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of model.safetensors
};

/// Writes a model folder with weights as panels of the format `weights`: the weights of matrix products and embeddings.
/// Norms, biases, positions and everything else stay float32. Translator, TextGenerator, Classifier and Embedder
/// load such a folder as any other, and map it. Training needs the original. The folder is written whole or not at all:
/// `before_each` is called before each matrix and at the end, and when it throws nothing is left. Throws FileError,
/// also when `out` exists; ConfigError for a model whose weights are panels already.
QuantizedModel quantize_model_folder(const std::filesystem::path& model, const std::filesystem::path& out,
                                     WeightFormat weights, const std::function<void()>& before_each = {});

}  // namespace attune
