#pragma once
// Attention patterns on the command line.

#include <CLI/CLI.hpp>
#include <string>

#include "attune/kernels/attention/attention_pattern.h"

namespace attune::cli {

/// The sizes of patterns; each pattern uses those that it needs.
struct PatternOptions {
  int64_t size = 256;
  int64_t stride = 128;
  int64_t summary = 8;

  void add_to(CLI::App& command);
  /// Returns the pattern that has this name in configurations. Throws ConfigError that names `option` and all names, or
  /// the size that is not possible.
  AttentionPattern pattern(const char* option, const std::string& name) const;
};

/// "window, size 256"
std::string pattern_text(const AttentionPattern& pattern);

}  // namespace attune::cli
