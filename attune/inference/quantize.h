#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "attune/ops/panel_weight.h"

namespace [[gnu::visibility("default")]] attune {

struct QuantizedModel {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of model.safetensors
};

/// Writes a model folder whose weights are packed for inference: what the matrices of `model` are multiplied by becomes
/// `weights`, embeddings included; norms, biases, positions and what else is no product's weight stay float32.
/// Translator, TextGenerator and Classifier load such a folder as any other, and map it. Training needs the original.
/// The folder is there whole or not at all: `before_each` is called before each matrix and at the end, and what it
/// throws leaves nothing behind. Throws FileError, also when there is something at `out`, and ConfigError for a model
/// that is packed already, or that is for training alone (encoder_masked_lm).
QuantizedModel quantize_model_folder(const std::filesystem::path& model, const std::filesystem::path& out,
                                     WeightFormat weights, const std::function<void()>& before_each = {});

}  // namespace attune
