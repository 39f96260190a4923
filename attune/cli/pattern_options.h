#pragma once
// Attention patterns on the command line.

#include <CLI/CLI.hpp>
#include <string>

#include "attune/kernels/attention_pattern.h"

namespace attune::cli {

/// The sizes of patterns; a pattern takes those that it has.
struct PatternOptions {
  int64_t size = 256;
  int64_t stride = 128;
  int64_t summary = 8;

  void add_to(CLI::App& command);
  /// By the name that configurations use. Throws ConfigError naming the names, or the size that cannot be.
  AttentionPattern pattern(const std::string& name) const;
};

/// "window, size 256"
std::string pattern_text(const AttentionPattern& pattern);

}  // namespace attune::cli
