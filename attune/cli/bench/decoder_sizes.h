#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

#include "attune/models/config.h"

namespace attune::cli {

/// The sizes of a language model with random weights, and their options.
struct DecoderSizes {
  int64_t d_model = 512, heads = 8, layers = 6, d_ff = 2048, vocab = 8000;

  TransformerConfig config() const {
    TransformerConfig config{.architecture = Architecture::decoder_lm};
    config.vocab = vocab;
    config.d_model = d_model;
    config.heads = heads;
    config.layers = layers;
    config.d_ff = d_ff;
    return config;
  }

  void add_options(CLI::App& command) {
    command.add_option("--d-model", d_model)->capture_default_str();
    command.add_option("--heads", heads)->capture_default_str();
    command.add_option("--layers", layers)->capture_default_str();
    command.add_option("--d-ff", d_ff)->capture_default_str();
    command.add_option("--vocab", vocab)->capture_default_str();
  }
};

}  // namespace attune::cli
